"""The guard: watches and drift repair, which need only the Kubernetes API and the Sentinel's volume.

It runs from the start of the process to its end, also before the login to Jazz, so that Jazz and etcd themselves are
restored when they are lost.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reside.model.kinds import EVENT, KINDS, POD
from reside.sentinel.guard.api import connect
from reside.sentinel.guard.authority import Authority
from reside.sentinel.guard.cache import ObjectCache
from reside.sentinel.guard.pods import FailingProbes, PodCache
from reside.sentinel.guard.repairer import DriftRepairer
from reside.sentinel.guard.troubles import Both, Troubles
from reside.sentinel.guard.watch import follow
from reside.sentinel.store.earlier_vault import take_over
from reside.sentinel.store.stacks import StackStore
from reside.sentinel.store.vault import Vault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reside.sentinel.guard.api import KubernetesApi
    from reside.sentinel.guard.settings import GuardSettings


@dataclass(frozen=True)
class Guard:
    """The parts of a guard; the leading Sentinel uses them, too."""

    api: KubernetesApi
    cache: ObjectCache
    pods: PodCache
    store: StackStore
    vault: Vault
    authority: Authority
    repairer: DriftRepairer
    troubles: Troubles = field(default_factory=Troubles)

    async def reload(self) -> None:
        """Reload stacks and vault from the volume, because another Sentinel may have written them.

        It takes several rounds of the event loop: a thousand stacks take a tenth of a second.
        """
        await self.store.reload()
        await self.vault.reload()
        await self.repairer.reload()


@asynccontextmanager
async def run_guard(settings: GuardSettings) -> AsyncIterator[Guard]:
    """Watch and repair while the block is open; an error of a watch or of the repairer ends the block.

    Raises:
        InvalidInput: the Kubernetes API can't be reached with these settings, or the vault can't be decrypted.
    """
    settings.state_dir.mkdir(parents=True, exist_ok=True)
    async with connect(settings.namespace, settings.kubeconfig, settings.kube_context) as api:
        guard = await asyncio.to_thread(_open, api, settings)
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(guard.repairer.run(), name="repairer")]
            running.append(tasks.create_task(guard.repairer.availability.run(), name="availability"))
            running.append(tasks.create_task(guard.repairer.verified.run(), name="verified states"))
            running.append(tasks.create_task(guard.repairer.findings.run(), name="repair events"))
            running += [
                tasks.create_task(follow(api, guard.cache, kind), name=f"watch {kind.plural}") for kind in KINDS
            ]
            running.append(tasks.create_task(follow(api, guard.pods, POD), name="watch pods"))
            warnings = Both(FailingProbes(guard.pods), guard.troubles)
            running.append(tasks.create_task(follow(api, warnings, EVENT), name="watch events"))
            try:
                yield guard
            finally:
                for task in running:
                    task.cancel()


def _open(api: KubernetesApi, settings: GuardSettings) -> Guard:
    """Read the stacks and secret values on the volume, and return a guard that is not running."""
    store = StackStore(settings.stacks_dir)
    vault = Vault(settings.vault_dir, settings.passphrase)
    take_over(settings.earlier_vault, vault, settings.passphrase)
    cache, authority = ObjectCache(), Authority()
    repairer = DriftRepairer(api, cache, store, vault, authority)
    return Guard(api, cache, PodCache(store.holder), store, vault, authority, repairer)
