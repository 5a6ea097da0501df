"""Somebody who reaches the sync server with a fresh key pair: signs anything, and sends it over a raw connection."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from blake3 import blake3
from websockets.asyncio.client import ClientConnection, connect

from reside.jazz import now_ms
from reside.jazz.wire.crypto import Agent, new_agent_secret
from reside.jazz.wire.encoding import b58encode, quote_plainly, stable_json
from reside.jazz.wire.header import account_header
from reside.jazz.wire.random_ids import new_session_tail

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

_WITHIN_S = 60.0
_SIGNED = ("changes", "encryptedChanges", "keyUsed", "madeAt", "meta", "privacy")


class Stranger:
    """One connection of an agent without an account.

    Attributes:
        agent: its key pairs.
    """

    def __init__(self, socket: ClientConnection, url: str) -> None:
        self._socket = socket
        self._url = url
        self.agent = Agent.from_secret(new_agent_secret())

    @property
    def author(self) -> str:
        """The agent id as the author of sessions."""
        return self.agent.agent_id

    def session(self) -> str:
        """Return a new session id of an ordinary form."""
        return self.author + new_session_tail()

    def signature(self, transactions: Iterable[dict[str, Any]]) -> str:
        """Return the signature of a log; members that the protocol does not have are not signed."""
        hasher = blake3()
        for item in transactions:
            members = [f"{quote_plainly(key)}:{_signed(item[key])}" for key in _SIGNED if key in item]
            hasher.update(f"{{{','.join(members)}}}".encode())
        return self.agent.sign(f'"hash_z{b58encode(hasher.digest())}"')

    async def send(self, message: Any) -> None:
        """Send a message; a text is sent as it is."""
        await self._socket.send(message if isinstance(message, str | bytes) else json.dumps(message))

    def content(self, co_id: str, transactions: list[dict[str, Any]], *, session: str | None = None) -> dict[str, Any]:
        """Return a content message with a whole session of a value, signed."""
        batch = {"after": 0, "newTransactions": transactions, "lastSignature": self.signature(transactions)}
        return {"action": "content", "id": co_id, "priority": 3, "new": {session or self.session(): batch}}

    async def write(
        self,
        co_id: str,
        transactions: list[dict[str, Any]],
        *,
        session: str | None = None,
        header: dict[str, Any] | None = None,
    ) -> None:
        """Send a whole session of a value, signed."""
        message = self.content(co_id, transactions, session=session)
        await self.send(message if header is None else message | {"header": header})

    async def reported(self, co_id: str) -> dict[str, int]:
        """Return the sessions in the next known state of a value that the server reports."""
        async with asyncio.timeout(_WITHIN_S):
            while True:
                message = json.loads(await self._socket.recv())
                if message.get("id") == co_id and message.get("action") == "known":
                    return dict(message["sessions"])

    async def publish_account(self) -> str:
        """Upload an account of this agent that has never written anything; return its id."""
        header = account_header(self.agent.agent_id)
        await self.send({"action": "content", "id": header.co_id, "priority": 0, "header": dict(header.raw), "new": {}})
        return header.co_id

    async def sessions(self, co_id: str) -> dict[str, int]:
        """Return how many transactions of each session of a value the server has, after all that was sent here.

        A second connection asks for it: to this one, the server would not send what came from here.
        """
        unknown = account_header(Agent.from_secret(new_agent_secret()).agent_id).co_id
        async with asyncio.timeout(_WITHIN_S):
            await self._load(unknown)
            async with stranger(self._url) as other:
                return await other._load(co_id)

    async def stored(self, co_id: str, sessions: int) -> None:
        """Wait until the server acknowledged that it has at least so many sessions of a value."""
        while True:
            message = json.loads(await self._socket.recv())
            if message.get("id") == co_id and message["action"] == "known" and len(message["sessions"]) >= sessions:
                return

    async def _load(self, co_id: str) -> dict[str, int]:
        await self.send({"action": "load", "id": co_id, "header": False, "sessions": {}})
        counts: dict[str, int] = {}
        while True:
            message = json.loads(await self._socket.recv())
            if message.get("id") != co_id:
                continue
            if message["action"] == "known":
                return counts
            counts |= {key: batch["after"] + len(batch["newTransactions"]) for key, batch in message["new"].items()}
            expected = message.get("expectContentUntil") or {}
            if all(counts.get(key, 0) >= count for key, count in expected.items()):
                return counts


def _signed(member: Any) -> str:
    """Return the JSON of a member of a transaction; all texts are escaped, also those that begin as ciphers do."""
    return quote_plainly(member) if isinstance(member, str) else stable_json(member)


@asynccontextmanager
async def stranger(url: str) -> AsyncIterator[Stranger]:
    """Yield a stranger that is connected to a sync server."""
    async with connect(url, max_size=None, max_queue=None) as socket:
        yield Stranger(socket, url)


def trusting(changes: Any = (), *, made_at: int | None = None, **members: Any) -> dict[str, Any]:
    """Return a readable transaction; a text as changes is taken as it is."""
    text = changes if isinstance(changes, str) else json.dumps(list(changes), separators=(",", ":"))
    return {"changes": text, "madeAt": now_ms() if made_at is None else made_at, "privacy": "trusting", **members}


def set_key(key: str, value: Any) -> dict[str, Any]:
    """Return the change that sets a key of a map or a group."""
    return {"op": "set", "key": key, "value": value}
