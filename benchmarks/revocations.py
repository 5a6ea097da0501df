"""Measure how soon a revoked permission is refused, while handlers of other grantees hang and fail.

A replica has granted a permission to many accounts. Its handler for one of them never returns, and that for another one
raises an error. Alpha then revokes the permissions of the others, one after the other. Printed are, from the moment at
which Alpha has written a revocation, the seconds until a check in the replica refuses the permission, and until the
replica has carried the revocation out (`current`). All parts run on this machine, with a sync server and an etcd.
"""

from __future__ import annotations

import asyncio
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests")]

from support.replicas import GREETING, greeting_contract, run_alpha_double, run_servers  # noqa: E402

from benchmarks.command import run  # noqa: E402 - needs the path above, as all that follow
from reside.model.permissions import Grant, PermissionRef  # noqa: E402
from reside.replica import Replica  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.replica import Context

WITHIN_S = 120.0
YES, NO = Grant(granted=True), Grant(granted=False)


def greeter(hanging: set[str], failing: set[str]) -> Replica:
    """Return a replica whose revocations hang or fail for some accounts."""
    replica = Replica(greeting_contract())

    async def granted(_context: Context, _ref: PermissionRef, _grant: Grant) -> None:
        return

    async def revoked(_context: Context, ref: PermissionRef, _grant: Grant) -> None:
        if ref.account in hanging:
            await asyncio.Event().wait()
        if ref.account in failing:
            raise RuntimeError("the handler of this grantee fails")

    replica.permission(GREETING, "greet", granted=granted, revoked=revoked)
    return replica


async def seconds_until(context: Context, holds: Callable[[], bool]) -> float:
    """Return the seconds until a condition of the replica's control block holds."""
    began, changed = time.perf_counter(), context.rcb.watch()
    async with asyncio.timeout(WITHIN_S):
        while not holds():
            await changed.wait()
            changed.clear()
    return time.perf_counter() - began


async def measure(grantees: int, samples: int) -> None:
    """Print the times of revocations."""
    hanging: set[str] = set()
    failing: set[str] = set()
    refused: list[float] = []
    ended: list[float] = []
    with run_servers() as servers:
        async with run_alpha_double(servers) as alpha:
            identity = await alpha.identity("greeter")
            accounts = [(await alpha.account(f"grantee {n}")).account_id for n in range(grantees)]
            refs = [PermissionRef(account, GREETING, "greet") for account in accounts]
            hanging.add(accounts[0])
            failing.add(accounts[1])
            async with greeter(hanging, failing).start(identity.settings, serve=False) as context:
                for ref in refs:
                    await alpha.expect(identity, ref, YES)
                await seconds_until(context, lambda: all(context.rcb.is_granted(ref) for ref in refs))
                for ref in refs[:2]:
                    await alpha.expect(identity, ref, NO)
                for n in range(samples):
                    ref = refs[2 + n % (grantees - 2)]
                    if not context.rcb.is_granted(ref):
                        await alpha.expect(identity, ref, YES)
                        await seconds_until(context, partial(context.rcb.is_granted, ref))
                    writing = asyncio.create_task(alpha.expect(identity, ref, NO))
                    refused.append(await seconds_until(context, partial(_is_refused, context, ref)))
                    ended.append(refused[-1] + await seconds_until(context, partial(_is_over, context, ref)))
                    await writing
    print(f"{grantees} grantees, one handler hangs, one fails; {samples} revocations of others, seconds")
    print(f"{'':24}{'p50':>8}{'p99':>8}{'worst':>8}")
    for what, times in (("refused at a check", refused), ("carried out", ended)):
        print(f"{what:24}{_quantile(times, 0.5):8.3f}{_quantile(times, 0.99):8.3f}{max(times):8.3f}")


def _is_refused(context: Context, ref: PermissionRef) -> bool:
    return not context.rcb.is_granted(ref)


def _is_over(context: Context, ref: PermissionRef) -> bool:
    entry = context.rcb.find(ref)
    return entry is not None and entry.current == NO


def _quantile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, round(share * len(times)))]


if __name__ == "__main__":
    run(measure, __doc__, grantees=100, samples=200)
