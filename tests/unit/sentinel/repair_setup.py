"""A drift repairer with a cluster in memory, for unit tests."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL
from reside.model.kinds import KINDS
from reside.model.stacks import DesiredStack
from reside.sentinel.errors import ClusterRefused, ClusterUnavailable
from reside.sentinel.guard.authority import Authority
from reside.sentinel.guard.cache import ObjectCache
from reside.sentinel.guard.repairer import DriftRepairer
from reside.sentinel.store.stacks import StackStore, StoredStack
from reside.sentinel.store.vault import Vault

OURS = {MANAGED_BY_LABEL: FIELD_MANAGER}


A = "ConfigMap/a"


def config_map(name: str, value: str = "1") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": OURS}, "data": {"v": value}}


def versioned(name: str, version: str, value: str = "1") -> dict[str, Any]:
    found = config_map(name, value)
    return {**found, "metadata": {**found["metadata"], "resourceVersion": version}}


@dataclass
class DictApi:
    """The part of `KubernetesApi` that the repairer uses; applied objects appear in the cache, as through a watch."""

    cache: ObjectCache
    namespace: str = "test"
    applied: list[str] = field(default_factory=list)
    refuse: bool = False
    away: int = 0
    """Number of further requests that fail because the API server is unreachable."""
    unlabelled: dict[str, dict[str, Any]] = field(default_factory=dict)
    after_apply: Any = None

    async def get(self, key: str) -> dict[str, Any] | None:
        """Return an object that is live without our label."""
        return self.unlabelled.get(key)

    async def apply(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Record the object as live."""
        key = f"{manifest['kind']}/{manifest['metadata']['name']}"
        if self.away:
            self.away -= 1
            raise ClusterUnavailable(f"apply {key}: nobody answers")
        if self.refuse:
            raise ClusterRefused(f"apply {key}: no", 403)
        self.applied.append(key)
        self.cache.note("MODIFIED", manifest)
        if self.after_apply:
            self.after_apply(manifest)
        return manifest

    async def set_managers(self, live: dict[str, Any], entries: list[dict[str, Any]]) -> dict[str, Any]:
        """Raise, because no call is expected."""
        raise AssertionError("nobody's fields are to be taken over here")


@dataclass
class Setup:
    """A repairer and what it works with."""

    cache: ObjectCache
    authority: Authority
    store: StackStore
    api: DictApi
    repairer: DriftRepairer

    def delete(self, key: str) -> None:
        """Record a deletion as a watch does."""
        live = self.cache.get(key)
        assert live is not None
        self.cache.note("DELETED", live)


@asynccontextmanager
async def new_setup(
    folder: Path, stored: StoredStack, *, lead: bool = True, live: Collection[dict[str, Any]] = ()
) -> AsyncIterator[Setup]:
    store = StackStore(folder / "stacks")
    store.save(stored)
    cache, authority = ObjectCache(), Authority()
    api = DictApi(cache)
    vault = Vault(folder / "vault", SecretStr("x"))
    repairer = DriftRepairer(api, cache, store, vault, authority)  # type: ignore[arg-type]  # a fake
    runners = [asyncio.create_task(repairer.run()), asyncio.create_task(repairer.verified.run())]
    if lead:
        authority.lead()
    for kind in KINDS:
        await cache.load(kind, [each for each in live if each["kind"] == kind.kind])
    try:
        async with asyncio.timeout(60):
            await repairer.settled()
            yield Setup(cache, authority, store, api, repairer)
    finally:
        for runner in runners:
            runner.cancel()


def stored(*objects: dict[str, Any]) -> StoredStack:
    return StoredStack("demo", "co_zowner").after_apply(DesiredStack("demo", "co_zowner", objects))
