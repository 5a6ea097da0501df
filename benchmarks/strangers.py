"""Compare what a log full of strangers' sessions costs a reader of reside.jazz and one of the JavaScript client.

Anyone who reaches a sync server in `open` mode can write sessions into any value: the server checks signatures, and
readers check roles. Here a map has one honest transaction, and as many sessions of others as `--sessions` says, each
with one transaction that does not count. They are of one agent, of an agent each, or of an account each, whose value a
reader must load to verify the session. Each reader is a new process that loads the map from the same server on
loopback. Printed are seconds, seconds of CPU time, and the growth of the resident size of the process in MiB, each with
the ratio of Python to JavaScript.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.jazz import LANGUAGES, peer_process

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests")]

from interop.strangers.stranger import Stranger, set_key, stranger, trusting  # noqa: E402 - needs the path above
from support.jazz_server import jazz_server  # noqa: E402

from reside.jazz import Credentials, Node  # noqa: E402
from reside.jazz.wire.crypto import Agent, new_agent_secret  # noqa: E402
from reside.jazz.wire.header import account_header  # noqa: E402
from reside.jazz.wire.random_ids import new_session_tail  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1 << 20
SESSIONS_OF_A_MESSAGE = 5000
STORED_WITHIN_S = 600.0
KINDS = ("one agent", "an agent each", "an account each")


class Cost(NamedTuple):
    """What a load costs: seconds, seconds of CPU time, bytes of resident size."""

    seconds: float
    cpu: float
    memory: float


def main() -> None:
    """Run all kinds of strangers and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=100_000, help="sessions of strangers in the map")
    parser.add_argument("--rounds", type=int, default=3, help="loads by each language; medians are printed")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only these")
    parser.add_argument("--python", default=sys.executable, help="interpreter of the Python side; default: this one")
    arguments = parser.parse_args()
    print(f"{'sessions of':20}{'':10}{'JavaScript':>12}{'Python':>12}{'ratio':>8}")
    for kind in arguments.kind or KINDS:
        costs = asyncio.run(_measure(kind, arguments.sessions, arguments.rounds, arguments.python))
        _print(kind, costs)


async def _measure(kind: str, sessions: int, rounds: int, python: str) -> dict[str, list[Cost]]:
    costs: dict[str, list[Cost]] = {language: [] for language in LANGUAGES}
    with jazz_server() as server:
        async with Node(server.url, Credentials.generate()) as owner:
            await owner.register("owner")
            group = owner.create_group()
            await group.add_member("everyone", "reader")
            value = group.create_map({"key0": "honest"})
            await owner.flush()
        async with stranger(server.url) as who:
            await _write(who, value.id, sessions, kind)
        for number in range(rounds):
            for language in LANGUAGES if number % 2 else reversed(LANGUAGES):
                async with peer_process(language, python) as peer:
                    await peer("register", url=server.url)
                    before, cpu = await peer("memory"), peer.cpu
                    seconds = await peer("load_whole", id=value.id, count=1)
                    used = peer.cpu - cpu
                    costs[language].append(Cost(seconds, used, await peer("memory") - before))
    return costs


async def _write(who: Stranger, co_id: str, sessions: int, kind: str) -> None:
    """Write sessions to a value, and wait until the server has them."""
    new: dict[str, Any] = {}
    for number, (author, agent) in enumerate(_authors(who, sessions, kind), 1):
        if author != agent.agent_id:
            header = dict(account_header(agent.agent_id).raw)
            await who.send({"action": "content", "id": author, "priority": 0, "header": header, "new": {}})
        who.agent = agent
        transactions = [trusting([set_key(f"forged{number}", number)])]
        batch = {"after": 0, "newTransactions": transactions, "lastSignature": who.signature(transactions)}
        new[author + new_session_tail()] = batch
        if len(new) == SESSIONS_OF_A_MESSAGE or number == sessions:
            await who.send({"action": "content", "id": co_id, "priority": 3, "new": new})
            new = {}
    async with asyncio.timeout(STORED_WITHIN_S):
        await who.stored(co_id, sessions)


def _authors(who: Stranger, count: int, kind: str) -> Iterator[tuple[str, Agent]]:
    """Yield authors of sessions, and their agents."""
    for _ in range(count):
        agent = who.agent if kind == "one agent" else Agent.from_secret(new_agent_secret())
        yield (account_header(agent.agent_id).co_id if kind == "an account each" else agent.agent_id), agent


def _print(kind: str, costs: dict[str, list[Cost]]) -> None:
    js, own = (Cost(*map(statistics.median, zip(*costs[language], strict=True))) for language in LANGUAGES)
    for name, unit, theirs, ours in (
        ("seconds", 1, js.seconds, own.seconds),
        ("CPU s", 1, js.cpu, own.cpu),
        ("MiB", MIB, js.memory, own.memory),
    ):
        print(f"{kind:20}{name:10}{theirs / unit:12.2f}{ours / unit:12.2f}{ours / theirs:8.2f}", flush=True)


if __name__ == "__main__":
    main()
