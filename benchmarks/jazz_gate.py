"""Compare the sync server in members mode with the same server in open mode, which is the official behaviour.

A raw client sends content that was signed before, so that the server is the bottleneck, and waits until the last
message is acknowledged. Rounds are interleaved. Numbers are medians: messages in a second, and the server's CPU time
for one. The first run needs npm. The toolchain is not needed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blake3 import blake3
from websockets.asyncio.client import ClientConnection, connect

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests")]

from support.jazz_server import JazzServer, jazz_server  # noqa: E402 - needs the path above

from reside.jazz import now_ms  # noqa: E402
from reside.jazz.wire.crypto import Agent, new_agent_secret  # noqa: E402
from reside.jazz.wire.encoding import b58encode, stable_json  # noqa: E402
from reside.jazz.wire.header import Header, group_header, owned_header  # noqa: E402
from reside.jazz.wire.random_ids import new_session_tail  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

MODES = ("open", "members")
WRITES, MAPS, PARENTS = 3000, 1000, 3
Sample = tuple[float, float]
"""Seconds, and seconds of the server's CPU time."""


@dataclass
class Writer:
    """An agent that signs content.

    Attributes:
        messages: the content, in the order in which it is sent.
    """

    agent: Agent = field(default_factory=lambda: Agent.from_secret(new_agent_secret()))
    messages: list[str] = field(default_factory=list)

    def session(self, header: Header, changes: list[list[Any]], *, batches: bool = False) -> None:
        """Add a value and a session of it: in one message, or in one for each transaction."""
        session, hasher, message = self.agent.agent_id + new_session_tail(), blake3(), {}
        made = [{"changes": json.dumps(each), "madeAt": now_ms(), "privacy": "trusting"} for each in changes]
        head: dict[str, Any] = {"action": "content", "id": header.co_id, "priority": header.priority}
        for index, item in enumerate(made):
            hasher.update(stable_json(item).encode())
            if not batches and index + 1 < len(made):
                continue
            signature = self.agent.sign(f'"hash_z{b58encode(hasher.digest())}"')
            after = index if batches else 0
            batch = {"after": after, "newTransactions": made[after : index + 1], "lastSignature": signature}
            message = head | ({"header": dict(header.raw)} if after == 0 else {}) | {"new": {session: batch}}
            self.messages.append(json.dumps(message))

    def group(self, *parents: Header) -> Header:
        """Add a group with this agent as its admin, that extends other groups."""
        header = group_header(self.agent.agent_id, None, now_ms())
        roles = [{"op": "set", "key": self.agent.agent_id, "value": "admin"}]
        roles += [{"op": "set", "key": f"parent_{parent.co_id}", "value": "extend"} for parent in parents]
        self.session(header, [[role] for role in roles])
        return header


def _prepared(parents: int) -> tuple[Writer, list[str], Header]:
    """Return a writer, the content of its groups, and the group that is to own values."""
    writer = Writer()
    group = writer.group()
    for _ in range(parents):
        outsider = Writer(messages=writer.messages)
        child = outsider.group(group)
        group = child
    first, writer.messages = writer.messages, []
    return writer, first, group


def stream(parents: int = 0) -> tuple[list[str], list[str]]:
    """Return the content of groups, and writes to one map, a message each."""
    writer, first, group = _prepared(parents)
    changes = [[{"op": "set", "key": f"key{number}", "value": number}] for number in range(WRITES)]
    writer.session(owned_header("comap", group.co_id, now_ms()), changes, batches=True)
    return first, writer.messages


def maps() -> tuple[list[str], list[str]]:
    """Return the content of a group, and new maps, a message each."""
    writer, first, group = _prepared(0)
    for number in range(MAPS):
        header = owned_header("comap", group.co_id, now_ms())
        writer.session(header, [[{"op": "set", "key": "x", "value": number}]])
    return first, writer.messages


ROWS: dict[str, Callable[[], tuple[list[str], list[str]]]] = {
    f"{WRITES:,} writes to a map": stream,
    f"the same, with a role through {PARENTS} parents": lambda: stream(PARENTS),
    f"{MAPS:,} new maps": maps,
}


async def _send(socket: ClientConnection, messages: list[str]) -> None:
    """Send messages, and wait until the last one is acknowledged, which the server does in order."""
    last = json.loads(messages[-1])
    wanted = {session: batch["after"] + len(batch["newTransactions"]) for session, batch in last["new"].items()}

    async def acknowledged() -> None:
        while True:
            for line in str(await socket.recv()).split("\n"):
                answer = json.loads(line)
                if answer.get("id") == last["id"] and wanted.items() <= answer.get("sessions", {}).items():
                    return

    waiting = asyncio.create_task(acknowledged())
    for message in messages:
        await socket.send(message)
    await waiting


async def _sample(server: JazzServer, first: list[str], messages: list[str]) -> Sample:
    async with connect(server.url, max_size=None, compression=None) as socket:
        await _send(socket, first)
        began, cpu = time.perf_counter(), _cpu(server.pid)
        await _send(socket, messages)
        return time.perf_counter() - began, _cpu(server.pid) - cpu


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _measure(rounds: int) -> dict[str, dict[str, list[Sample]]]:
    samples: dict[str, dict[str, list[Sample]]] = {name: defaultdict(list) for name in ROWS}
    with jazz_server(MODE="open") as opened, jazz_server(MODE="members") as gated:
        servers = dict(zip(MODES, (opened, gated), strict=True))
        for number in range(rounds + 1):
            for name, make in ROWS.items():
                for mode in MODES if number % 2 else reversed(MODES):
                    sample = await _sample(servers[mode], *make())
                    if number > 0:
                        samples[name][mode].append(sample)
    return samples


def main() -> None:
    """Run the rounds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="measured rounds; one more warms up")
    samples = asyncio.run(_measure(parser.parse_args().rounds))
    print(f"{'':42}{'open':>12}{'members':>12}{'cost':>8}{'open, CPU':>12}{'members, CPU':>14}{'cost':>8}")
    for name, runs in samples.items():
        count = MAPS if "maps" in name else WRITES
        (open_s, open_cpu), (gated_s, gated_cpu) = (
            map(statistics.median, zip(*runs[mode], strict=True)) for mode in MODES
        )
        rates = "".join(f"{count / seconds:>9,.0f} /s" for seconds in (open_s, gated_s))
        cpu = f"{open_cpu / count * 1e6:>9.0f} µs{gated_cpu / count * 1e6:>11.0f} µs"
        print(f"{name:42}{rates}{gated_s / open_s - 1:>8.1%}{cpu}{gated_cpu / open_cpu - 1:>8.1%}")


if __name__ == "__main__":
    main()
