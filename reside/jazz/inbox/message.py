"""One message of an inbox, and the type of its handler."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from reside.jazz.errors import InvalidContent
from reside.jazz.ids import AccountId, CoId, is_co_id
from reside.jazz.values.comap import CoMap
from reside.jazz.values.value import Value

Handler: TypeAlias = Callable[["InboxMessage"], Awaitable[Value | None]]
"""Handles a message and returns the answer to the sender. Raising `MessageRefused` is an answer as well."""


class MessageRefused(Exception):  # noqa: N818 - says what happened
    """The owner of an inbox refuses a message. The sender receives the text."""


@dataclass(frozen=True)
class InboxMessage:
    """One message.

    Attributes:
        sender: the account that put the message into the inbox; verified by its signature.
        payload: the value that the message refers to. It need not belong to the sender: like jazz-tools, the inbox does
            not check. If ownership matters, check the payload's group, or who wrote it (`CoMap.edit`).
        key: its position: `<session>/<index>`.
    """

    sender: AccountId
    payload: Value
    key: str


def id_in(holder: CoMap, key: str) -> CoId:
    """Return the id of the value that a map refers to under a key.

    Raises:
        InvalidContent: the key does not contain an id.
    """
    value = holder.get(key)
    if not isinstance(value, str) or not is_co_id(value):
        raise InvalidContent(f"{holder.id} has no value id in its key {key}")
    return CoId(value)
