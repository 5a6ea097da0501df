"""The sender's side of an inbox."""

import asyncio
from typing import Any

from reside.jazz.errors import InvalidContent, JazzTimeout
from reside.jazz.ids import AccountId, CoId, is_co_id
from reside.jazz.inbox.message import MessageRefused
from reside.jazz.node import Node
from reside.jazz.values.cofeed import CoFeed
from reside.jazz.values.owned import OwnedValue


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
