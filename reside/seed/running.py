"""Run Alpha and the Sentinel inside the seed, at most once in a process, with the settings of their later pods.

Their own connections use addresses that this machine can reach; what they publish and render contains in-cluster names.
The Sentinel's state is discarded: its pod adopts the same objects with a state of its own.
"""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from reside.access.addresses import Addresses, addresses
from reside.access.client import connect, default_kubeconfig
from reside.access.objects import read_secret
from reside.alpha import app as alpha_app
from reside.alpha import bootstrap
from reside.alpha.settings import AlphaSettings
from reside.common.files import write_private
from reside.model.constants import ALPHA_NAME, REGISTRY_SECRET, REGISTRY_SECRET_KEY, SENTINEL_NAME
from reside.model.errors import InvalidInput
from reside.model.identities import resolved
from reside.registry import Snapshot
from reside.seed.accounts import Identities, read_identities
from reside.seed.leading import Leader
from reside.seed.thread import ReplicaThread
from reside.sentinel.app import Sentinel
from reside.sentinel.settings import SentinelSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reside.access.target import Target
    from reside.alpha.bootstrap import SystemBlocks
    from reside.alpha.state import Alpha
    from reside.jazz import Credentials
    from reside.seed.settings import BootstrapSettings

STOP_S = 30.0


@dataclass(frozen=True)
class Seed:
    """The running replicas, with their control blocks and temporary state."""

    alpha: ReplicaThread[Alpha]
    sentinel: ReplicaThread[Sentinel]
    blocks: SystemBlocks
    folder: TemporaryDirectory[str]
    """The Sentinel's state."""
    leader: Leader = field(default_factory=Leader)
    """What Alpha does."""

    @property
    def alive(self) -> bool:
        """Whether both replicas are running."""
        return self.alpha.alive and self.sentinel.alive


_lock = threading.Lock()
_running: list[Seed] = []
_prepared: dict[Target, tuple[Identities, SystemBlocks]] = {}


def ensure_running(settings: BootstrapSettings) -> Seed:
    """Return the seed of this process; start it if necessary and wait until both replicas have started."""
    with _lock:
        if _running and _running[0].alive:
            return _running[0]
        _stop()  # if one replica has failed, the other still holds a lease, for which its successor would wait
        seed = _start(settings)
        _running.append(seed)
        seed.sentinel.ready(settings.deadline)
        seed.alpha.ready(settings.deadline)
        return seed


def connected_alpha() -> ReplicaThread[Alpha] | None:
    """Return the Alpha of this process, which may no longer lead; None if none is connected."""
    with _lock:
        return _running[0].alpha if _running and _running[0].alpha.alive else None


def stop() -> None:
    """Stop the seed's replicas gracefully, which releases their leases; do nothing if none run."""
    with _lock:
        _stop()


def _stop() -> None:
    for seed in _running:
        seed.alpha.stop(STOP_S)
        seed.sentinel.stop(STOP_S)
        seed.folder.cleanup()
    _running.clear()


def _start(settings: BootstrapSettings) -> Seed:
    identities, blocks = prepared(settings)
    folder = TemporaryDirectory(prefix="reside-seed-", ignore_cleanup_errors=True)
    if settings.registry_credentials and settings.access != "in-cluster":
        os.environ["DOCKER_CONFIG"] = asyncio.run(write_login(settings, Path(folder.name) / "registry"))

    @asynccontextmanager
    async def alpha() -> AsyncIterator[Alpha]:
        async with open_alpha(settings, identities, blocks) as running:
            yield running

    @asynccontextmanager
    async def sentinel() -> AsyncIterator[Sentinel]:
        async with addresses(settings.target) as where:
            yield Sentinel(sentinel_settings(settings, identities, blocks.sentinel, where, Path(folder.name)))

    leader = Leader()
    seed = Seed(
        ReplicaThread(ALPHA_NAME, alpha, leader.run),
        ReplicaThread(SENTINEL_NAME, sentinel, lambda running: running.run(serve=False), Sentinel.stop),
        blocks,
        folder,
        leader,
    )
    seed.sentinel.start()
    seed.alpha.start()
    return seed


async def write_login(settings: BootstrapSettings, folder: Path) -> str:
    """Write the credentials of registries, which Alpha's pod mounts, to a Docker configuration; return its folder.

    Raises:
        InvalidInput: the Secret does not exist.
    """
    async with connect(settings.target) as client:
        secret = await read_secret(client, REGISTRY_SECRET)
    if not secret or REGISTRY_SECRET_KEY not in secret:
        raise InvalidInput(
            f"the setting registryCredentials needs the Secret {REGISTRY_SECRET} in namespace {settings.namespace}: "
            "create it (docs/own-cluster.md)"
        )
    write_private(folder / "config.json", secret[REGISTRY_SECRET_KEY], make_folder=True)
    return str(folder)


def prepared(settings: BootstrapSettings) -> tuple[Identities, SystemBlocks]:
    """Return what `prepare` returns. A process does it once for each cluster."""
    if settings.target not in _prepared:
        remember(settings, asyncio.run(prepare(settings)))
    return _prepared[settings.target]


def remember(settings: BootstrapSettings, found: tuple[Identities, SystemBlocks]) -> None:
    """Let `prepared` return this for the cluster."""
    _prepared[settings.target] = found


async def prepare(settings: BootstrapSettings, identities: Identities | None = None) -> tuple[Identities, SystemBlocks]:
    """Return the credentials in the cluster's Secrets, and the control blocks; create missing control blocks.

    Args:
        settings: the settings of the cluster.
        identities: the credentials; None: they are read.
    """
    known = identities or await read_identities(settings.target)
    async with addresses(settings.target) as where:
        blocks = await bootstrap.prepare(
            where.jazz, [where.etcd], known.alpha, known.sentinel, settings.image_repository
        )
    return known, blocks


@asynccontextmanager
async def open_alpha(settings: BootstrapSettings, identities: Identities, blocks: SystemBlocks) -> AsyncIterator[Alpha]:
    """Start Alpha without its control loop."""
    async with (
        addresses(settings.target) as where,
        alpha_app.started(alpha_settings(settings, identities, blocks.alpha, where), serve=False) as running,
    ):
        running.snapshot = read_snapshot(settings)
        yield running


def read_snapshot(settings: BootstrapSettings) -> Snapshot | None:
    """Return what the images say about themselves, if it was kept when they were built; without it, Alpha asks."""
    if settings.image_documents is None:
        return None
    try:
        return Snapshot.from_json(Path(settings.image_documents).read_text()).renamed(resolved)
    except OSError:
        return None


def alpha_settings(settings: BootstrapSettings, identities: Identities, block: str, where: Addresses) -> AlphaSettings:
    """Return Alpha's settings as its pod has them, but with addresses that this machine can reach."""
    return AlphaSettings(
        **_common(ALPHA_NAME, identities.alpha, block, where),
        **settings.cluster().model_dump(),
    )


def sentinel_settings(
    settings: BootstrapSettings, identities: Identities, block: str, where: Addresses, folder: Path
) -> SentinelSettings:
    """Return the Sentinel's settings as its pod has them, but with reachable addresses and a temporary state.

    Outside of a pod it has no service account, and needs the kubeconfig that the bootstrap uses.
    """
    kubeconfig = None
    if settings.access != "in-cluster":
        kubeconfig = Path(settings.kubeconfig) if settings.kubeconfig else default_kubeconfig()
    return SentinelSettings(
        **_common(SENTINEL_NAME, identities.sentinel, block, where),
        namespace=settings.namespace,
        state_dir=folder,
        engine_passphrase=identities.engine_passphrase,
        kubeconfig=kubeconfig,
        kube_context=settings.kube_context,
        careful=True,
    )


def _common(name: str, credentials: Credentials, block: str, where: Addresses) -> dict[str, Any]:
    return {
        "replica_name": name,
        "control_block_id": block,
        "account_id": credentials.account_id,
        "agent_secret": credentials.agent_secret,
        "sync_server_url": where.jazz,
        "etcd_hosts": (where.etcd,),
        "internal_endpoint": f"http://{name}",
        "listen_host": "127.0.0.1",
        "listen_port": 0,
    }
