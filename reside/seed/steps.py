"""The steps of the bootstrap as plain functions, called by its dynamic resources.

Invariants: every step is idempotent; outputs contain no secrets. The functions are synchronous, because Pulumi's
provider process does not await them. Each runs a coroutine in a new loop, or submits it to a replica inside the seed.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from reside.access.client import connect
from reside.access.objects import cluster_uid
from reside.model.constants import ALPHA_NAME, ETCD_NAME, JAZZ_NAME, SENTINEL_NAME
from reside.seed import leftovers, logs, preflight, recording
from reside.seed.kubernetes import (
    ensure_namespace,
    has_ready_pod,
    wait_for_replica,
    wait_for_start,
    wait_for_stateful_set,
)
from reside.seed.teardown import tear_down

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reside.access.target import Target
    from reside.seed.settings import BootstrapSettings

Outputs = dict[str, Any]
_LATER: Final = ("reside.seed.sentinel", "reside.seed.running", "reside.seed.handover")
"""Modules of later steps, which take a second to import."""


def namespace(settings: BootstrapSettings) -> Outputs:
    """Create the namespace unless it exists; a pod's own namespace exists. Record the start, and check the cluster.

    Returns:
        the unique id of the Kubernetes cluster, if this user may read it.

    Raises:
        ResideError: the cluster lacks something that the bootstrap needs.
    """

    async def create() -> str | None:
        async with connect(settings.target) as client:
            if settings.access != "in-cluster":
                await ensure_namespace(client, settings.namespace)
            await preflight.check_rights(client, settings)
            return await cluster_uid(client)

    async def check() -> None:
        async with connect(settings.target) as client:
            await preflight.check(client, settings)

    uid = asyncio.run(create())
    recording.begin(settings, "storage", is_first=True)
    with recording.begun(settings, "storage"):
        asyncio.run(check())
    return {"cluster": uid}


def ready(settings: BootstrapSettings) -> Outputs:
    """Wait until Jazz and etcd are ready."""

    async def wait() -> None:
        async with connect(settings.target) as client:
            for name in (JAZZ_NAME, ETCD_NAME):
                await wait_for_stateful_set(client, name, settings.deadline)

    with recording.recorded(settings, "storage"), _imported_meanwhile():
        asyncio.run(wait())
    return {}


@contextmanager
def _imported_meanwhile() -> Iterator[None]:
    """Import what the next steps need, in another thread, while this one waits for pods.

    The end of the block waits for it: two threads that import modules of one cycle may see them unfinished.
    """
    thread = threading.Thread(target=lambda: [import_module(name) for name in _LATER], name="imports", daemon=True)
    thread.start()
    yield
    thread.join()


def identities(settings: BootstrapSettings) -> Outputs:
    """Create Secrets, accounts, Alpha's data, control blocks, and the Sentinel's data in careful mode."""
    from reside.access.addresses import addresses  # noqa: PLC0415 - slow to import
    from reside.seed import accounts, running, sentinel  # noqa: PLC0415 - slow to import, and needed only by creates

    async def create() -> accounts.Identities:
        found, blocks = await running.prepare(settings, await accounts.ensure_identities(settings.target))
        async with addresses(settings.target) as where:
            await sentinel.begin_careful_mode(where.jazz, found.sentinel)
        running.remember(settings, (found, blocks))
        return found

    logs.configure()
    with recording.recorded(settings, "accounts"):
        found = asyncio.run(create())
        recording.record_account(settings, found.alpha.account_id)
    return {"alpha": found.alpha.account_id, "sentinel": found.sentinel.account_id}


def launch(settings: BootstrapSettings) -> Outputs:
    """Start Alpha and the Sentinel in this process; wait until Alpha's required permissions are granted."""
    logs.configure()
    with recording.recorded(settings, "launch"):
        _launch(settings)
    return {}


def _launch(settings: BootstrapSettings) -> None:
    from reside.alpha import bootstrap  # noqa: PLC0415 - slow to import
    from reside.seed import running  # noqa: PLC0415 - slow to import

    seed = running.ensure_running(settings)
    block = seed.blocks.sentinel
    seed.alpha.run(lambda alpha: bootstrap.until_granted(alpha, block), settings.deadline, "permissions are granted")


def load(settings: BootstrapSettings) -> Outputs:
    """Load seed, Sentinel and Alpha; wait for the pods of the Sentinel and Alpha, which then become leaders."""
    seed, sentinel, alpha = settings.images.seed, settings.images.kubernetes_sentinel, settings.images.alpha
    with recording.recorded(settings, "load"):
        asyncio.run(_check_ingress(settings))
        if asyncio.run(_is_alpha_ready(settings)):
            _load_by_cluster(settings, [seed, alpha, sentinel])  # who reads reports first, then who writes them
        else:
            _load_by_seed(settings, [seed, sentinel, alpha])
    return {}


async def _check_ingress(settings: BootstrapSettings) -> None:
    async with connect(settings.target) as client:
        await preflight.check_ingress(client, settings)


def _load_by_seed(settings: BootstrapSettings, images: list[str]) -> None:
    """Load the images; let each replica in the cluster take over as soon as its process serves.

    The Sentinel in the cluster begins with all stacks, the platform's too, while the pod of Alpha still starts.
    Kubernetes sets a pod ready a second after its startup probe has succeeded, so only the end waits for that.
    """
    from reside.alpha import bootstrap  # noqa: PLC0415 - slow to import
    from reside.seed import handover, running  # noqa: PLC0415 - slow to import

    logs.configure()
    _launch(settings)
    seed = running.ensure_running(settings)
    stored = settings.cluster()
    seed.alpha.run(lambda alpha: bootstrap.store_settings(alpha, stored), settings.deadline, "the settings are stored")
    seed.alpha.run(
        lambda alpha: bootstrap.load_system(alpha, images), settings.deadline, "seed, Sentinel and Alpha are loaded"
    )
    asyncio.run(_until_started(settings, SENTINEL_NAME))
    seed.sentinel.stop(running.STOP_S)
    identities, _blocks = running.prepared(settings)
    seed.alpha.run(
        lambda alpha: handover.declare(alpha, settings, identities),
        settings.deadline + handover.MARGIN_S,
        "the platform is declared",
    )
    asyncio.run(_until_started(settings, ALPHA_NAME))
    seed.alpha.run(seed.leader.stop, running.STOP_S, "Alpha's lease is released")
    asyncio.run(_until_ready(settings))


def _load_by_cluster(settings: BootstrapSettings, images: list[str]) -> None:
    from reside.seed import running, upgrade  # noqa: PLC0415 - slow to import

    logs.configure()
    running.stop()
    asyncio.run(_until_ready(settings))
    asyncio.run(upgrade.upgrade(settings, images))
    asyncio.run(_until_ready(settings))


async def _until_started(settings: BootstrapSettings, name: str) -> None:
    async with connect(settings.target) as client:
        await wait_for_start(client, name, settings.deadline)


async def _until_ready(settings: BootstrapSettings) -> None:
    async with connect(settings.target) as client:
        for name in (SENTINEL_NAME, ALPHA_NAME):
            await wait_for_replica(client, name, settings.deadline)


async def _is_alpha_ready(settings: BootstrapSettings) -> bool:
    """Return whether the Alpha in the cluster is ready; it is loaded after the seed and the Sentinel."""
    async with connect(settings.target) as client:
        return await has_ready_pod(client, ALPHA_NAME)


def hand_over(settings: BootstrapSettings) -> Outputs:
    """Make the platform a stack of the Sentinel in the cluster, then end careful mode."""
    from reside.seed import handover  # noqa: PLC0415 - slow to import

    logs.configure()

    def record_end(account: str) -> None:
        recording.record_account(settings, account)  # that of a cluster that is older than the record
        recording.end(settings, "handover")

    with recording.begun(settings, "handover"):
        handover.hand_over(settings, record_end)
    return {}


def delete_managed(target: Target) -> None:
    """Stop the Sentinel and delete all objects that it manages; needs only the Kubernetes API."""

    async def delete() -> None:
        async with connect(target) as client:
            await tear_down(client, target.namespace, SENTINEL_NAME, target.deadline)

    asyncio.run(delete())


def delete_all(target: Target) -> None:
    """Run `delete_managed`; delete Secrets and marks, so that nothing remains of the cluster in its namespace."""
    delete_managed(target)

    async def delete_rest() -> None:
        async with connect(target) as client:
            await leftovers.delete(client)

    asyncio.run(delete_rest())
