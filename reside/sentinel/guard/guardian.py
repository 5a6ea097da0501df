"""The part of the Sentinel that needs nothing but the Kubernetes API and its volume: watches and the fast path.

It runs from the start of the process to its end, before the login to Jazz as well, so that Jazz and etcd themselves
come back when they are gone.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reside.model.kinds import KINDS
from reside.sentinel.guard.api import connect
from reside.sentinel.guard.authority import Mandate
from reside.sentinel.guard.cache import Mirror
from reside.sentinel.guard.repairer import Keeper
from reside.sentinel.guard.watch import follow
from reside.sentinel.store.stacks import Snapshot
from reside.sentinel.store.vault import Vault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reside.sentinel.guard.api import Cluster
    from reside.sentinel.guard.settings import GuardSettings


@dataclass(frozen=True)
class Guardian:
    """What guards live objects, and what the leading Sentinel works with."""

    cluster: Cluster
    mirror: Mirror
    snapshot: Snapshot
    vault: Vault
    mandate: Mandate
    keeper: Keeper

    def reload(self) -> None:
        """Read again what another Sentinel may have written to the volume."""
        self.snapshot.load()
        self.vault.load()
        self.keeper.reload()


@asynccontextmanager
async def guarding(settings: GuardSettings) -> AsyncIterator[Guardian]:
    """Watch and repair while the block is open; a failure of a watch or of the repair ends the block.

    Raises:
        InvalidInput: the Kubernetes API can't be reached with these settings, or the vault does not open.
    """
    settings.state_dir.mkdir(parents=True, exist_ok=True)
    async with connect(settings.namespace, settings.kubeconfig, settings.kube_context) as cluster:
        guardian = assemble(cluster, settings)
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(guardian.keeper.run(), name="keeper")]
            running += [
                tasks.create_task(follow(cluster, guardian.mirror, kind), name=f"watch {kind.plural}") for kind in KINDS
            ]
            try:
                yield guardian
            finally:
                for task in running:
                    task.cancel()


def assemble(cluster: Cluster, settings: GuardSettings) -> Guardian:
    """The parts, put together, not running."""
    mirror, mandate = Mirror(), Mandate()
    snapshot = Snapshot(settings.stacks_dir)
    vault = Vault(settings.vault_file, settings.passphrase)
    keeper = Keeper(cluster, mirror, snapshot, vault, mandate)
    return Guardian(cluster, mirror, snapshot, vault, mandate, keeper)
