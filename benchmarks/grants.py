"""Measure a replica whose control block has many permissions: a check, a changed grant, a new one, start, memory.

The replica is a process of its own, with the permission loop of the SDK and handlers that do nothing. The block is
written beforehand: every entry is granted and settled. Printed is the CPU time of the replica's process for one event.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests"), str(Path(__file__).resolve().parents[1])]

from support.replicas import GREETING, environment, greeting_contract, run_alpha_double, run_servers  # noqa: E402

from benchmarks.command import run  # noqa: E402 - needs the path above, as all that follow
from benchmarks.processes import cpu_s, memory_mib  # noqa: E402
from reside.jazz import Node  # noqa: E402
from reside.model.permissions import Grant, PermissionRef  # noqa: E402
from reside.replica import ControlBlock, Replica, ReplicaSettings  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from support.replicas import AlphaDouble, Identity

    from reside.replica import Context

WITHIN_S = 600.0
CHECKS = 20_000
QUIET_TIMES, IDLE_S = 4, 0.02
"""A process is settled if so often in a row it used less CPU in half a second."""
YES, NO = Grant(granted=True), Grant(granted=False)
_SERVE = "RESIDE_BENCHMARK_SERVE"


def replica() -> Replica:
    """Return the measured replica."""
    made = Replica(greeting_contract())

    async def nothing(_context: Context, _ref: PermissionRef, _grant: Grant) -> None:
        return

    for name in ("greet", "greet:room"):
        made.permission(GREETING, name, granted=nothing, revoked=nothing)

    @made.main
    async def main(context: Context) -> None:
        """Time checks once, and then wait for grants."""
        refs = [permission.ref for permission in context.rcb.permissions()]
        began = time.process_time()
        for number in range(CHECKS):
            context.rcb.is_granted(refs[number * 7919 % len(refs)])
        _write(f"{1000 * (time.process_time() - began) / CHECKS}")
        await asyncio.Event().wait()

    return made


def _write(text: str) -> None:
    Path(os.environ[_SERVE]).write_text(text)


async def fill(alpha: AlphaDouble, identity: Identity, accounts: Sequence[str], entries: int) -> None:
    """Write entries that are granted, expected and current, and what the replica has published of them."""
    each = -(-entries // len(accounts))
    refs = [PermissionRef(account, GREETING, "greet:room", f"room {n}") for account in accounts for n in range(each)][
        :entries
    ]
    for ref in refs:
        await identity.rcb.set_expected(ref, YES)
        await alpha.node.drain()
    await alpha.node.flush(timeout=WITHIN_S)
    async with Node(alpha.servers.jazz.url, identity.credentials) as node:
        await node.login()
        block = await ControlBlock.load(node, identity.settings.control_block_id)
        for ref in refs:
            block.set_current(ref, YES)
            await node.drain()
        await node.flush(timeout=WITHIN_S)
        block.close()


@asynccontextmanager
async def process(identity: Identity, checks: Path) -> AsyncIterator[int]:
    """Run the replica, and yield its process id."""
    settings = environment(identity, 0) | {_SERVE: str(checks)}
    with (checks.parent / "replica.log").open("ab") as log:
        running = await asyncio.create_subprocess_exec(
            sys.executable, __file__, env=settings, stdout=log, stderr=log, cwd=Path(__file__).parents[1]
        )
    try:
        yield running.pid
    finally:
        running.terminate()
        await running.wait()


async def changes(alpha: AlphaDouble, identity: Identity, refs: Sequence[PermissionRef], grant: Grant) -> None:
    """Change the expected grants one after the other; wait until each is carried out."""
    for ref in refs:
        await alpha.expect(identity, ref, grant)
        await alpha.until_current(identity, ref, grant)


async def measure(entries: int, grantees: int, samples: int) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder, run_servers() as servers:
        checks = Path(folder) / "checks"
        async with run_alpha_double(servers) as alpha:
            identity = await alpha.identity("greeter")
            accounts = [(await alpha.account(f"grantee {n}")).account_id for n in range(grantees)]
            await fill(alpha, identity, accounts, entries)
            began = time.monotonic()
            async with process(identity, checks) as pid, asyncio.timeout(WITHIN_S):
                while not _has(checks):  # noqa: ASYNC110 - another process, which has no event for it
                    await asyncio.sleep(0.1)
                start_s = time.monotonic() - began
                await settled(pid)
                start_cpu = cpu_s(pid)
                some = [PermissionRef(accounts[n % grantees], GREETING, "greet:room", "room 0") for n in range(samples)]
                fresh = [PermissionRef(accounts[n % grantees], GREETING, "greet") for n in range(samples)]
                rows = []
                for what, refs, grant in (
                    ("revoked", some, NO),
                    ("granted again", some, YES),
                    ("new entry", fresh, YES),
                ):
                    before = cpu_s(pid)
                    await changes(alpha, identity, refs, grant)
                    rows.append((what, 1000 * (cpu_s(pid) - before) / samples))
                memory = memory_mib(pid)
            check_ms = float(_text(checks))
    print(f"{entries:,} permissions of {grantees:,} grantees in one block; {samples} changes each")
    print(f"  a check                {check_ms:8.4f} ms CPU (target: below 0.1)")
    for what, cost in rows:
        print(f"  a grant, {what:<13} {cost:8.2f} ms CPU (target: below 5)")
    print(f"  start                  {start_s:8.2f} s, until settled {start_cpu:.1f} s CPU; memory {memory:.0f} MiB")


def _has(checks: Path) -> bool:
    return checks.exists()


def _text(checks: Path) -> str:
    return checks.read_text()


async def settled(pid: int) -> None:
    """Wait until a process has been idle for a while."""
    before, quiet = cpu_s(pid), 0
    while quiet < QUIET_TIMES:
        await asyncio.sleep(0.5)
        now = cpu_s(pid)
        quiet, before = (quiet + 1 if now - before < IDLE_S else 0), now


if __name__ == "__main__":
    if os.environ.get(_SERVE):
        replica().launch(ReplicaSettings)
    else:
        run(measure, __doc__, entries=20_000, grantees=500, samples=50)
