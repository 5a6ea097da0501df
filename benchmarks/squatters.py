"""Measure what names that a stranger has taken cost Alpha: create and load a replica, without and with them.

A stranger uploads values under names of look-ups that Alpha will use (ids of load requests, replicas and versions, and
names of replicas), with content of its own. The sync server runs in `open` mode and accepts them. Each measured load is
one `create-load-request`, its validation, its approval, and the creation of its version, by the clock of the client.
The loads of both halves are made by one Alpha, alternately with names that are free and names that are taken.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests")]

from interop.strangers.stranger import set_key, stranger, trusting  # noqa: E402
from support.alpha_cluster import alpha_cluster, run_servers  # noqa: E402

from benchmarks.command import run  # noqa: E402 - needs the path above, as all that follow
from reside.jazz.wire.header import unique_header  # noqa: E402
from reside.model import lookup  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.alpha_cluster import AlphaCluster, Client, Servers

FORGED = trusting([set_key("target", "co_zForged"), set_key("claimant", "co_zForged")], made_at=1)
_BATCH = 2_000


def taken_names(cluster: AlphaCluster, count: int, first: int) -> Iterator[tuple[str, str]]:
    """Yield the group and the name of `count` look-ups, from the number `first` on."""
    data = cluster.alpha.data
    for number in range(first, first + count // 4):
        yield data.public.id, lookup.load_request_by_id(number)
        yield data.public.id, lookup.replica_by_id(number)
        yield data.public.id, lookup.load_request_by_name(f"taken{number}")
        yield data.replicas_group.id, f"version.of-request.{number}"


async def squat(cluster: AlphaCluster, count: int, first: int) -> None:
    """Upload a forged value under each name, and wait until the server has them."""
    async with stranger(cluster.servers.jazz.url) as who:
        for sent, (group, name) in enumerate(taken_names(cluster, count, first), 1):
            header = unique_header("comap", group, name)
            await who.send(who.content(header.co_id, [FORGED]) | {"header": dict(header.raw)})
            if sent % _BATCH == 0:
                await who.sessions(header.co_id)
        await who.sessions(header.co_id)


async def load(admin: Client, servers: Servers, name: str) -> float:
    """Load a replica, and return the seconds that it took."""
    info = {"name": name, "class": "long-running", "exclusive": True, "scalable": True}
    await servers.push(f"examples/{name}:v1", type="replica", info=info)
    began = time.perf_counter()
    await admin.load(f"examples/{name}:v1")
    return time.perf_counter() - began


async def measure(names: int, loads: int) -> None:
    """Print the times of loads before and after a stranger has taken names."""
    with tempfile.TemporaryDirectory() as folder, run_servers(Path(folder), mode="open") as servers:
        async with alpha_cluster(servers) as cluster:
            admin = await cluster.admin()
            await load(admin, servers, "warm-up")
            free = [await load(admin, servers, f"free{n}") for n in range(loads)]
            await squat(cluster, names, first=loads + 2)
            taken = [await load(admin, servers, f"taken{loads + 2 + n}") for n in range(loads)]
    print(f"{names:,} names taken by a stranger; {loads} loads each, seconds (median, worst)")
    for what, times in (("names are free", free), ("names are taken", taken)):
        print(f"  {what:<16} {statistics.median(times):6.3f} {max(times):6.3f}")
    print(f"  ratio of the medians {statistics.median(taken) / statistics.median(free):.2f}")


if __name__ == "__main__":
    run(measure, __doc__, names=100_000, loads=20)
