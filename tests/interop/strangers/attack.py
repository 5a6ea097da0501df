"""All attacks of strangers at once, as a program: it repeats them on every value of a plan until it is terminated.

`python -m interop.strangers.attack PLAN` reads a JSON file before each round, so that a test can add values:

    {"url": "ws://…", "values": [id, …], "groups": [id, …], "unique": [[group id, name], …]}

After each round it prints a line with the number of messages so far, and of connections that the server closed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interop.strangers.poison import FORGED, POISON
from interop.strangers.stranger import Stranger, set_key, trusting
from interop.strangers.test_server_survival import MESSAGES as MALFORMED
from interop.strangers.test_unknown_dependencies import MESSAGES as UNKNOWN
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from reside.jazz.wire.header import unique_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FAR = 2**53 - 1
_SESSIONS = 5
"""Sessions of one agent that are added to each value in a round."""
_PAUSE_S = 0.2
"""After a connection that the server did not take."""


class Attack:
    """One round after the other.

    Attributes:
        sent: the number of messages.
        closed: the number of connections that the server closed.
    """

    def __init__(self, plan: Path) -> None:
        self._plan = plan
        self.sent = 0
        self.closed = 0

    async def round(self) -> None:
        """Attack every value of the plan once."""
        plan = json.loads(self._plan.read_text())
        for co_id in plan["values"]:
            await self._send(plan["url"], lambda who, co_id=co_id: self._poison(who, co_id))
        for co_id in plan["groups"]:
            await self._send(plan["url"], lambda who, co_id=co_id: self._join(who, co_id))
        for group, name in plan["unique"]:
            await self._send(plan["url"], lambda who, group=group, name=name: self._take(who, group, name))
        for make in MALFORMED.values():
            await self._send(plan["url"], lambda who, make=make: iter([make(who, plan["values"][0])]))

    def _poison(self, who: Stranger, co_id: str) -> Iterator[Any]:
        for make in POISON.values():
            session, transactions = make(who)
            yield who.content(co_id, transactions, session=session)
        for _ in range(_SESSIONS):
            yield who.content(co_id, [trusting(FORGED)])

    def _join(self, who: Stranger, group: str) -> Iterator[Any]:
        """Write to a group: roles, dates in the future, members and parents that do not exist."""
        yield who.content(group, [trusting([set_key(who.author, "revoked")], made_at=FAR)])
        yield who.content(group, [trusting([set_key(who.author, "admin")]), trusting([set_key("everyone", "admin")])])
        yield who.content(group, [trusting(meta='{"branch":"x","ownerId":"' + group + '"}', made_at=FAR)])
        for make in UNKNOWN.values():
            yield make(who, group, group)

    def _take(self, who: Stranger, group: str, name: str) -> Iterator[Any]:
        """Create the unique map of a name before its owner does."""
        header = unique_header("comap", group, name)
        content = who.content(header.co_id, [trusting(FORGED, made_at=1, meta='{"fww":"init"}')])
        yield content | {"header": dict(header.raw)}

    async def _send(self, url: str, make: Callable[[Stranger], Iterator[Any]]) -> None:
        async with await _connect(url) as socket:
            who = Stranger(socket, url)
            try:
                for message in make(who):
                    await who.send(message)
                    self.sent += 1
            except ConnectionClosed:
                self.closed += 1


async def _connect(url: str) -> ClientConnection:
    """Return a connection, once the server takes it."""
    while True:
        try:
            return await connect(url, max_size=None, max_queue=None)
        except (OSError, InvalidHandshake):
            await asyncio.sleep(_PAUSE_S)


async def main(plan: Path) -> None:
    """Attack until the program is terminated."""
    attack = Attack(plan)
    while True:
        await attack.round()
        sys.stdout.write(json.dumps({"sent": attack.sent, "closed": attack.closed}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
