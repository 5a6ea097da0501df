"""Describe faults that pydantic found: the path of each member, but never its value, which may be secret."""

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
        error: the error that pydantic raised.
        root: name of the validated value, for a fault of the whole value.
        skip: number of leading parts of each path to leave out, such as the tag of a union.
        name: returns the name of a member from the parts of its path.
    """
    found = error.errors(include_url=False, include_context=False, include_input=False)
    named = ((name([str(part) for part in fault["loc"][skip:]]) or root, fault["msg"]) for fault in found)
    return "; ".join(f"{member}: {message}" for member, message in named)
