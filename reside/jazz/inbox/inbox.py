"""The owner's side of an inbox."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from reside.jazz.errors import JazzError
from reside.jazz.ids import AccountId, is_account_id, is_co_id
from reside.jazz.inbox.message import Handler, InboxMessage, MessageRefused, id_in
from reside.jazz.node import Node
from reside.jazz.values.cofeed import CoFeed, FeedEntry
from reside.jazz.values.comap import CoMap

_log = logging.getLogger(__name__)
_CONCURRENCY: Final = 10


async def make_inbox(node: Node) -> None:
    """Create an inbox for the node's account, if it has none.

    Raises:
        NotPermitted: this account may not write its profile.
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
    """The inbox of the node's account; call `open` to get one."""

    def __init__(self, node: Node, messages: CoFeed, processed: CoFeed, failed: CoFeed) -> None:
        self._node = node
        self._messages = messages
        self._processed = processed
        self._failed = failed
        self._taken: set[str] = set()

    @staticmethod
    async def open(node: Node) -> "Inbox":
        """Load the inbox of the node's account, or create it.

        Raises:
            ValueNotFound: a part of it is missing on the server.
            InvalidContent: the profile refers to something else as the inbox.
        """
        await make_inbox(node)
        root = await node.load_map(id_in(node.account.profile, "inbox"))
        parts = (node.load_feed(id_in(root, name)) for name in ("messages", "processed", "failed"))
        messages, processed, failed = await asyncio.gather(*parts)
        return Inbox(node, messages, processed, failed)

    async def serve(self, handler: Handler, *, concurrency: int = _CONCURRENCY) -> None:
        """Handle pending and new messages until cancelled.

        A message is handled again if the process ends before the outcome reached the server, so the handler must be
        idempotent. A failed message does not stop the others. The sender receives the text of a `MessageRefused`; of
        any other error, the sender receives only the class and the log receives the rest.

        Args:
            handler: handles one message.
            concurrency: maximum number of messages handled at once.

        Raises:
            NodeClosed: the node was closed.
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
            payload = await self._node.load(id_in(message, "payload"))
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
        """Record the outcome for the owner, and for the sender if permitted."""
        self._processed.push(_key(entry))
        if error is not None:
            self._failed.push({"errors": [error], "value": entry.value})
        try:
            if message is not None:
                message.update({"processed": True} if error is None else {"error": error, "processed": True})
        except JazzError as refusal:
            _log.warning("could not notify the sender of %s: %s", entry.value, refusal)


def _key(entry: FeedEntry) -> str:
    return f"{entry.session}/{entry.index}"
