"""The sender's side of an inbox."""

import asyncio
from typing import Any

from reside.jazz.errors import InvalidArgument, InvalidContent, JazzTimeout
from reside.jazz.ids import AccountId, CoId, is_co_id
from reside.jazz.inbox.message import MessageRefused
from reside.jazz.node import Node
from reside.jazz.values.cofeed import CoFeed
from reside.jazz.values.owned import OwnedValue


class InboxSender:
    """A sender to another account's inbox; call `open` to get one."""

    def __init__(self, node: Node, owner: AccountId, messages: CoFeed) -> None:
        self._node = node
        self._owner = owner
        self._messages = messages

    @staticmethod
    async def open(node: Node, owner: AccountId) -> "InboxSender":
        """Join the inbox of an account with the invite in its profile.

        Raises:
            InvalidContent: the account has no inbox, or this account may not see it.
            ValueNotFound: the account does not exist.
        """
        profile = await (await node.load_account(owner)).load_profile()
        invite = profile.get("inboxInvite")
        if not isinstance(invite, str):
            why = f"its owner calls Inbox.open, and lets everyone read its profile {profile.id}"
            raise InvalidContent(f"the account {owner} has no inbox that can be seen here: {why}")
        try:
            messages = await node.accept_invite(invite)
        except InvalidArgument as error:
            raise InvalidContent(f"the inbox in the profile {profile.id} can't be used: {error}") from None
        return InboxSender(node, owner, await node.load_feed(messages.id))

    async def send(self, payload: OwnedValue, *, timeout: float = 60.0) -> CoId | None:  # noqa: ASYNC109 - raises our own error
        """Send a value and wait for the answer.

        The owner of the inbox becomes a writer of the payload's group.

        Args:
            payload: the value to send.
            timeout: how long to wait for the answer, in seconds.

        Returns:
            id of the value that the owner answered with; None if there is none.

        Raises:
            MessageRefused: the owner answered with an error.
            NotPermitted: this account may not add members to the payload's group.
            JazzTimeout: there was no answer in time; the message stays in the inbox.
        """
        group = payload.group
        if group.role_of(self._owner) not in ("admin", "manager", "writer"):
            await group.add_member(self._owner, "writer")
        message = group.create_map({"payload": payload.id, "processed": False})
        await self._node.flush()  # the owner must be able to load all of it as soon as it sees the message
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
