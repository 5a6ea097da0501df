"""Read members of JSON documents from Jazz; what is malformed is an error that names the member. Pure.

Members that nobody reads are ignored, so that a newer writer may add some.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping


def document(data: Any, what: str) -> Mapping[str, Any]:
    """Return a document that is a JSON object; `what` describes it in the error, here and below."""
    if not isinstance(data, dict):
        raise InvalidInput(f"{what}: it must be a JSON object")
    return data


def text(data: Mapping[str, Any], member: str, what: str) -> str:
    """Return a member that is a text."""
    value = data.get(member)
    if not isinstance(value, str):
        raise InvalidInput(f"{what}: member {member} must be a string")
    return value


def text_or_none(data: Mapping[str, Any], member: str, what: str) -> str | None:
    """Return a member that is a text, null, or missing."""
    return None if data.get(member) is None else text(data, member, what)


def texts(data: Mapping[str, Any], member: str, what: str) -> tuple[str, ...]:
    """Return a member that is a list of texts."""
    values = data.get(member)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InvalidInput(f"{what}: member {member} must be a list of strings")
    return tuple(values)
