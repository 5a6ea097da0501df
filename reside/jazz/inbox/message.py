"""One message of an inbox, and how its handler answers it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from reside.jazz.errors import InvalidContent
from reside.jazz.ids import AccountId, CoId, is_co_id
from reside.jazz.values.comap import CoMap
from reside.jazz.values.value import Value

Handler: TypeAlias = Callable[["InboxMessage"], Awaitable[Value | None]]
"""Deals with a message; what it gives is the answer to the sender. `MessageRefused` is an answer too."""


class MessageRefused(Exception):  # noqa: N818 - says what happened
    """The owner of an inbox refuses a message; the sender gets the text."""


@dataclass(frozen=True)
class InboxMessage:
    """One message.

    Attributes:
        sender: The account that put it into the inbox; signed by it.
        payload: What the sender named, which need not be its own: as in jazz-tools nobody checks that. Where it
            matters, look at its group, or at who wrote it (`CoMap.edit`).
        key: Its place: `<session>/<index>`.
    """

    sender: AccountId
    payload: Value
    key: str


def id_in(holder: CoMap, key: str) -> CoId:
    """Return the id of the value that a map names under a key.

    Raises:
        InvalidContent: It names none.
    """
    value = holder.get(key)
    if not isinstance(value, str) or not is_co_id(value):
        raise InvalidContent(f"{holder.id} names no value as its {key}")
    return CoId(value)
