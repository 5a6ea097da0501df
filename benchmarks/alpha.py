"""Measure Alpha at several numbers of replicas: loads, start of a leader, idle CPU, memory, growth of Jazz's database.

The leader is a process of its own. Sync server, etcd and registry are real; the Sentinel is the fake one of the tests.
Every size has a row; the ratio is that of the median load to the one of the first row. With `--keep FOLDER`, the
populations are stored there and used by the next run.

Alpha keeps the finished load requests of a replica up to a bound (setting `requestHistory`), and replaces the maps that
name them after 120 changes. So the growth of the database has two figures: `first` is that of the loads that fill the
history of a replica, `steady` that of the loads after these. A load leaves its version, its look-up, and the markers of
what was deleted.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sqlite3
import statistics
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests")]

import httpx2  # noqa: E402 - needs the path above, as all that follow
from support.alpha_cluster import CODE  # noqa: E402
from support.ports import free_port  # noqa: E402

from benchmarks.alpha_population import Servers, cluster_in, copy, hub_contract, hub_identity, populate  # noqa: E402
from benchmarks.processes import cpu_s, memory_mib  # noqa: E402
from reside.cli.loading import approve, create_request, wait_validated  # noqa: E402
from reside.cli.session import Session, endpoint_at  # noqa: E402
from reside.common.tls import trusted_authorities  # noqa: E402
from reside.jazz import AccountId, Node  # noqa: E402
from reside.model import constants  # noqa: E402
from reside.model.cluster import ClusterSettings  # noqa: E402
from reside.model.entities import LoadRequestSpec  # noqa: E402
from reside.model.errors import InvalidInput, NotAllowed  # noqa: E402
from reside.model.manifest import encode_label, parse_manifest  # noqa: E402
from reside.registry import ImageReference, RegistryClient  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

WITHIN_S = 900.0
ERASED_S = 7.0
"""After this time, the sync server has erased what was deleted: it does so every 5 s."""
TARGETS = "targets: ratio < 1.5, leads < 5 s, memory < 200 MiB, idle CPU < 1 %, steady growth < 10 KiB a load"
HEADER = (
    f"{'replicas':>8} {'requests':>8} | {'load s':>7} {'worst':>6} {'ratio':>6} {'CPU ms':>7} {'Jazz':>6} {'etcd':>6}"
    f" {'first':>6} {'steady KiB/load':>15}"
    f" | {'leads s':>7} {'1st load':>8} {'idle s':>7} {'CPU s':>6} | {'MiB':>5} {'idle %':>6}"
)


@dataclass
class Row:
    """The figures of one size; times in seconds, CPU of loads in ms for each load."""

    replicas: int
    requests: int
    loads: list[float] = field(default_factory=list)
    alpha_ms: float = 0.0
    jazz_ms: float = 0.0
    etcd_ms: float = 0.0
    first_kib: float = 0.0
    steady_kib: float = 0.0
    leads_s: float = 0.0
    first_load_s: float = 0.0
    settled_s: float = 0.0
    start_cpu_s: float = 0.0
    memory_mib: float = 0.0
    idle_percent: float = 0.0


@dataclass
class Leader:
    """A running Alpha."""

    pid: int
    port: int
    began: float
    http: httpx2.AsyncClient

    async def metrics(self) -> dict[str, float]:
        """Return the metrics of Alpha's page; empty as long as it does not respond."""
        try:
            page = (await self.http.get(f"http://127.0.0.1:{self.port}/metrics")).text
        except httpx2.TransportError:
            return {}
        lines = (line.rsplit(" ", 1) for line in page.splitlines() if line.startswith("reside_alpha_"))
        return {name: float(value) for name, value in lines}

    async def leads(self) -> None:
        """Wait until it leads."""
        await self._until(lambda seen: seen.get("reside_alpha_leader") == 1.0)

    async def settled(self) -> None:
        """Wait until no key of its queues waits or runs."""

        def busy(seen: dict[str, float]) -> float:
            keys = [name for name in seen if name.startswith("reside_alpha_queue_keys") and "failing" not in name]
            return sum(seen[name] for name in keys) if keys else 1.0

        await self._until(lambda seen: busy(seen) == 0.0)

    async def _until(self, holds: Any) -> None:
        async with asyncio.timeout(WITHIN_S):
            while not holds(await self.metrics()):  # noqa: ASYNC110 - metrics are read, they report no event
                await asyncio.sleep(0.05)


def used_kib(folder: Path) -> float:
    """Return the size of the used pages of the Jazz database in a folder."""
    with sqlite3.connect(f"file:{folder / 'jazz.sqlite'}?mode=ro", uri=True) as database:
        pages, free, size = (
            database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
    return float((pages - free) * size / 1024)


@asynccontextmanager
async def leader(servers: Servers, log: Path) -> AsyncIterator[Leader]:
    """Run Alpha as a process, which is stopped at the end of the block."""
    settings = servers.settings()
    port = free_port()
    environment = {
        "PATH": os.environ["PATH"],
        "RESIDE_REPLICA_NAME": "alpha",
        "RESIDE_CONTROL_BLOCK_ID": settings.control_block_id,
        "RESIDE_ACCOUNT_ID": settings.account_id,
        "RESIDE_AGENT_SECRET": settings.agent_secret.get_secret_value(),
        "RESIDE_SYNC_SERVER_URL": settings.sync_server_url,
        "RESIDE_ETCD_HOSTS": settings.etcd_hosts[0],
        "RESIDE_INTERNAL_ENDPOINT": f"http://127.0.0.1:{port}",
        "RESIDE_LISTEN_HOST": "127.0.0.1",
        "RESIDE_LISTEN_PORT": str(port),
        "RESIDE_NAMESPACE": "reside",
        "RESIDE_REGISTRY_MIRRORS": str(servers.images.mirrors).replace("'", '"'),
        "RESIDE_CLAIM_CODE": str(settings.claim_code.get_secret_value() if settings.claim_code else ""),
    } | {name: value for name, value in os.environ.items() if name.startswith("RESIDE_PROFILE")}
    began = time.monotonic()
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "reside.alpha", env=environment, stdout=output, stderr=output
        )
    try:
        async with httpx2.AsyncClient(verify=trusted_authorities(), trust_env=False) as http:
            yield Leader(process.pid, port, began, http)
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()


@asynccontextmanager
async def session(servers: Servers, running: Leader) -> AsyncIterator[Session]:
    """Open a session of the administrator, as the command does."""
    async with Node(servers.jazz.url, servers.admin) as node:
        await node.register("admin")
        await node.flush()
        alpha = AccountId(servers.alpha.account_id)
        profile = await (await node.load_account(alpha)).load_profile()
        data = await node.load_map(profile["contracts"][constants.ALPHA_CONTRACT])
        endpoint = f"http://127.0.0.1:{running.port}"
        async with httpx2.AsyncClient(verify=trusted_authorities(), trust_env=False) as http:
            yield Session(node, servers.admin, data, alpha, endpoint_at(endpoint), lambda: http)


async def claim(admin: Session) -> None:
    """Claim super admin access, and wait until Alpha has granted it."""
    await admin.call("claim-super-admin", {"code": CODE})
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                await admin.call("create-load-request", {"wish": "co_z1"})
            except NotAllowed:
                await asyncio.sleep(0.05)
            except InvalidInput:
                return  # it may create requests, and this is none


async def push(servers: Servers, name: str, version: int) -> str:
    """Push a version of an image that requires the first hub, and return its reference."""
    image = f"{constants.RESIDE_REGISTRY}/bench/{name}"
    required = {"hub": {"identity": hub_identity(0), "permissions": [{"name": "use"}]}}
    info = {"name": name, "class": "long-running", "exclusive": True, "scalable": True}
    client = RegistryClient(servers.images.mirrors)
    for identity, members in (
        (hub_identity(0), hub_contract(0).model_dump(mode="json", by_alias=True, exclude_none=True)),
        (image, {"type": "replica", "identity": image, "info": info, "requirements": required}),
    ):
        labels = {constants.MANIFEST_LABEL: encode_label(parse_manifest(members)), "unique": f"{name} {version}"}
        await client.push_label_image(ImageReference.parse(f"{identity}:v{version}"), labels)
        if identity != image:
            await client.push_label_image(ImageReference.parse(f"{identity}:latest"), labels)
    return f"{image}:v{version}"


async def load(admin: Session, image: str) -> float:
    """Load an image as the command does, and return the seconds from the request to the version."""

    async def decide(_seen: Any) -> None:
        return

    began = time.perf_counter()
    _, request = await create_request(admin, LoadRequestSpec(image=image))
    seen = await wait_validated(request, lambda _: None)
    await approve(admin, request, seen, decide, lambda _: None)
    return time.perf_counter() - began


async def load_all(admin: Session, running: Leader, images: list[str]) -> list[float]:
    """Load images one after the other, wait until everything is done, and return the seconds of each load."""
    seconds = [await load(admin, image) for image in images]
    await running.settled()
    return seconds


async def measure(servers: Servers, row: Row, *, loads: int, idle_s: float) -> None:
    """Start a leader, load versions of one replica, and let it idle."""
    jazz, etcd = servers.jazz.pid, servers.etcd.pid
    async with leader(servers, servers.folder / "alpha.log") as running:
        await running.leads()
        row.leads_s = time.monotonic() - running.began
        async with session(servers, running) as admin:
            await claim(admin)
            stamp = int(time.time())
            kept = ClusterSettings.model_fields["request_history"].default
            await load(admin, await push(servers, "measured", stamp))
            row.first_load_s = time.monotonic() - running.began
            await running.settled()
            row.settled_s, row.start_cpu_s = time.monotonic() - running.began, cpu_s(running.pid)
            images = [await push(servers, "measured", stamp + 1 + n) for n in range(kept + loads)]
            start = used_kib(servers.folder / "jazz")
            await load_all(admin, running, images[:kept])
            await asyncio.sleep(ERASED_S)
            filled, before = used_kib(servers.folder / "jazz"), [cpu_s(pid) for pid in (running.pid, jazz, etcd)]
            row.loads = await load_all(admin, running, images[kept:])
            used = [1000 * (cpu_s(pid) - b) / loads for pid, b in zip((running.pid, jazz, etcd), before, strict=True)]
            row.alpha_ms, row.jazz_ms, row.etcd_ms = used
            await asyncio.sleep(ERASED_S)
            row.first_kib = (filled - start) / kept
            row.steady_kib = (used_kib(servers.folder / "jazz") - filled) / loads
        await running.settled()
        began, idle = time.monotonic(), cpu_s(running.pid)
        await asyncio.sleep(idle_s)
        row.idle_percent = 100 * (cpu_s(running.pid) - idle) / (time.monotonic() - began)
        row.memory_mib = memory_mib(running.pid)


def show(row: Row, first: Row) -> str:
    """Return the line of a row."""
    load_s, base = statistics.median(row.loads), statistics.median(first.loads)
    return (
        f"{row.replicas:8,} {row.requests:8,} | {load_s:7.3f} {max(row.loads):6.2f} {load_s / base:6.2f}"
        f" {row.alpha_ms:7.0f} {row.jazz_ms:6.0f} {row.etcd_ms:6.0f} {row.first_kib:6.1f} {row.steady_kib:15.1f}"
        f" | {row.leads_s:7.2f} {row.first_load_s:8.2f} {row.settled_s:7.1f} {row.start_cpu_s:6.1f}"
        f" | {row.memory_mib:5.0f} {row.idle_percent:6.2f}"
    )


def sizes_of(replicas: list[int], requests: int) -> Iterator[tuple[int, int]]:
    """Yield the sizes: the smallest one without finished requests, then all with them."""
    yield replicas[0], 0
    if requests:
        yield from ((size, requests) for size in replicas)
    else:
        yield from ((size, 0) for size in replicas[1:])


async def run(options: argparse.Namespace) -> None:
    """Populate, measure and print each size."""
    with tempfile.TemporaryDirectory() as temporary:
        kept = options.keep or Path(temporary) / "kept"
        work, first, last = Path(temporary) / "work", None, None
        print(HEADER, flush=True)
        for replicas, requests in sizes_of(options.sizes, options.requests):
            folder = kept / f"{replicas}-{requests}"
            if not (folder / "complete").exists():
                if last is not None:
                    copy(last, folder)
                    (folder / "complete").unlink()
                async with cluster_in(folder) as servers:
                    await populate(servers, replicas=replicas, requests=requests)
                (folder / "complete").touch()
            last = folder
            copy(folder, work)
            row = Row(replicas, requests)
            async with cluster_in(work) as servers:
                await measure(servers, row, loads=options.loads, idle_s=options.idle)
            first = first or row
            print(show(row, first), flush=True)
    print(TARGETS)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")], default=[10, 200, 800, 2000])
    parser.add_argument("--requests", type=int, default=10_000, help="finished load requests")
    parser.add_argument("--loads", type=int, default=100)
    parser.add_argument("--idle", type=float, default=20.0, help="seconds without events")
    parser.add_argument("--keep", type=Path, help="folder for the populated clusters")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    asyncio.run(run(options))


if __name__ == "__main__":
    main()
