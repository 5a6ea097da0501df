"""Inboxes: messages to an account from whoever may see its profile (jazz-protocol.md §8).

An inbox is a feed that strangers may write to but not read, with the invite to it in the owner's public profile. A
message is a map that sender and owner share: it names the payload, and takes the owner's answer. What the owner dealt
with is noted in a feed of its own, by the place of the message in the sender's session, so that each is handled once,
also after a restart. The form is that of jazz-tools, so both sides can be JavaScript.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from .errors import InvalidContent, JazzError, JazzTimeout
from .ids import AccountId, CoId, is_account_id, is_co_id
from .node import Node
from .values.cofeed import CoFeed, FeedEntry
from .values.comap import CoMap
from .values.owned import OwnedValue
from .values.value import Value

_log = logging.getLogger(__name__)
_CONCURRENCY: Final = 10

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


async def make_inbox(node: Node) -> None:
    """Gives the own account an inbox, if it has none.

    Raises:
        NotPermitted: This account may not write its profile.
    """
    profile = node.account.profile
    if profile.get("inbox") is not None:
        return
    messages = node.create_group().create_feed()
    invite = await messages.group.create_invite("writeOnly", value=messages)
    processed, failed = node.account.create_feed(), node.account.create_feed()
    root = node.account.create_map({"messages": messages.id, "processed": processed.id, "failed": failed.id})
    profile.update({"inbox": root.id, "inboxInvite": invite.ticket})


class Inbox:
    """The own account's inbox; `open` gives one."""

    def __init__(self, node: Node, messages: CoFeed, processed: CoFeed, failed: CoFeed) -> None:
        self._node = node
        self._messages = messages
        self._processed = processed
        self._failed = failed
        self._taken: set[str] = set()

    @staticmethod
    async def open(node: Node) -> "Inbox":
        """Loads the inbox of the own account, or makes it.

        Raises:
            ValueNotFound: The server lacks a part of it.
            InvalidContent: The profile names something else as the inbox.
        """
        await make_inbox(node)
        root = await node.load_map(_id_in(node.account.profile, "inbox"))
        parts = (node.load_feed(_id_in(root, name)) for name in ("messages", "processed", "failed"))
        messages, processed, failed = await asyncio.gather(*parts)
        return Inbox(node, messages, processed, failed)

    async def serve(self, handler: Handler, *, concurrency: int = _CONCURRENCY) -> None:
        """Handles the messages that were not handled yet, and those to come, until it is cancelled.

        A message is handled again if the process ends before the outcome reached the server, so a handler should bear
        that. One that fails does not stop the others: the sender gets the text of a `MessageRefused`, of another error
        its class only, and the log the rest.

        Args:
            handler: Deals with one message.
            concurrency: How many at once.

        Raises:
            NodeClosed: The node was closed.
        """
        slots = asyncio.Semaphore(concurrency)
        try:
            async with asyncio.TaskGroup() as tasks, aclosing(self._new_entries()) as entries:
                async for entry in entries:
                    await slots.acquire()
                    task = tasks.create_task(self._handle(handler, entry))
                    task.add_done_callback(lambda _: slots.release())
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def _new_entries(self) -> AsyncGenerator[FeedEntry]:
        async with self._messages.watch() as changes:
            async for feed in changes:
                done = {entry.value for entry in self._processed.entries() if isinstance(entry.value, str)}
                for entry in feed.entries():
                    key = _key(entry)
                    if key in done or key in self._taken or not is_account_id(entry.by) or not is_co_id(entry.value):
                        continue
                    self._taken.add(key)
                    yield entry

    async def _handle(self, handler: Handler, entry: FeedEntry) -> None:
        message: CoMap | None = None
        try:
            message = await self._node.load_map(entry.value)
            payload = await self._node.load(_id_in(message, "payload"))
            result = await handler(InboxMessage(AccountId(entry.by), payload, _key(entry)))
        except MessageRefused as refusal:
            self._note(entry, message, str(refusal))
        except Exception as error:  # noqa: BLE001 - the handler is the caller's; its failure concerns one message
            _log.exception("message %s of %s failed", entry.value, entry.by)
            self._note(entry, message, type(error).__name__)
        else:
            if result is not None:
                message.set("result", result.id)
            self._note(entry, message, None)

    def _note(self, entry: FeedEntry, message: CoMap | None, error: str | None) -> None:
        """Notes the outcome for us, and for the sender as far as we may."""
        self._processed.push(_key(entry))
        if error is not None:
            self._failed.push({"errors": [error], "value": entry.value})
        try:
            if message is not None:
                message.update({"processed": True} if error is None else {"error": error, "processed": True})
        except JazzError as refusal:
            _log.warning("the sender of %s can't be told: %s", entry.value, refusal)


class InboxSender:
    """Sends to another account's inbox; `open` gives one."""

    def __init__(self, node: Node, owner: AccountId, messages: CoFeed) -> None:
        self._node = node
        self._owner = owner
        self._messages = messages

    @staticmethod
    async def open(node: Node, owner: AccountId) -> "InboxSender":
        """Joins the inbox of an account, by the invite in its profile.

        Raises:
            InvalidContent: The account has no inbox that this one may see.
            ValueNotFound: There is no such account.
        """
        profile = await (await node.load_account(owner)).load_profile()
        invite = profile.get("inboxInvite")
        if not isinstance(invite, str):
            raise InvalidContent(f"the account {owner} has no inbox, or its profile {profile.id} can't be read")
        messages = await node.accept_invite(invite)
        return InboxSender(node, owner, await node.load_feed(messages.id))

    async def send(self, payload: OwnedValue, *, timeout: float = 60.0) -> CoId | None:  # noqa: ASYNC109 - tells who
        """Sends a value, which the owner of the inbox becomes a writer of, and waits for the answer.

        Args:
            payload: What to send; its group gets the owner as a writer.
            timeout: How long to wait for the answer, in seconds.

        Returns:
            Id of the value that the owner answered with, if any.

        Raises:
            MessageRefused: The owner answered with an error.
            NotPermitted: This account may not add members to the payload's group.
            JazzTimeout: There was no answer in time; the message stays in the inbox.
        """
        group = payload.group
        if group.role_of(self._owner) not in ("admin", "manager", "writer"):
            await group.add_member(self._owner, "writer")
        message = group.create_map({"payload": payload.id, "processed": False})
        await self._node.flush()  # the owner must find all of it once it sees the message
        self._messages.push(message.id)
        try:
            async with asyncio.timeout(timeout), message.watch() as changes:
                async for state in changes:
                    if state.get("processed") is True:
                        break
        except TimeoutError:
            raise JazzTimeout(f"{self._owner} did not answer the message {message.id} within {timeout:g} s") from None
        error = message.get("error")
        if error is not None:
            raise MessageRefused(str(error))
        result: Any = message.get("result")
        return CoId(result) if is_co_id(result) else None


def _key(entry: FeedEntry) -> str:
    return f"{entry.session}/{entry.index}"


def _id_in(holder: CoMap, key: str) -> CoId:
    value = holder.get(key)
    if not isinstance(value, str) or not is_co_id(value):
        raise InvalidContent(f"{holder.id} names no value as its {key}")
    return CoId(value)
