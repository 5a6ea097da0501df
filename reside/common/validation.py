"""What a pydantic validation found wrong, in one line: each member by its path, never a value, which may be secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pydantic import ValidationError


def describe_faults(
    error: ValidationError, root: str, *, skip: int = 0, name: Callable[[Sequence[str]], str] = ".".join
) -> str:
    """Return all faults as `member.path: what is wrong`, separated by semicolons.

    Args:
        error: what pydantic raised.
        root: what the validated value is called, for a fault of the whole.
        skip: how many parts of each path to leave out, such as the tag of a union.
        name: makes the name of a member out of the parts of its path.
    """
    found = error.errors(include_url=False, include_context=False, include_input=False)
    named = ((name([str(part) for part in fault["loc"][skip:]]) or root, fault["msg"]) for fault in found)
    return "; ".join(f"{member}: {message}" for member, message in named)
