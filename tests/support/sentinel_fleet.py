"""A term of the Sentinel over many stacks, in one process: Jazz and the volume are real, Kubernetes is in memory.

The API counts its calls, so that a test can show that an event does not cost more the more stacks there are.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr
from support.sentinel import config_map, metadata, service, workload

from reside.model.applied import as_applied
from reside.model.kinds import KINDS
from reside.model.stacks import DesiredStack, K8sObject, object_key
from reside.sentinel.contract.data import SentinelData
from reside.sentinel.engine import ChangeSet, EngineUnavailable
from reside.sentinel.errors import ClusterUnavailable
from reside.sentinel.guard.authority import Authority
from reside.sentinel.guard.cache import ObjectCache
from reside.sentinel.guard.guard import Guard
from reside.sentinel.guard.pods import PodCache
from reside.sentinel.guard.repairer import DriftRepairer
from reside.sentinel.objects.identity import live_key
from reside.sentinel.store.stacks import StackStore
from reside.sentinel.store.vault import Vault
from reside.sentinel.term.context import LaneCounts, TermContext
from reside.sentinel.term.term import Term

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from reside.jazz import Node
    from reside.sentinel.engine import StackSpec

MANAGERS = [{"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": {"f:status": {}}}]


class FleetApi:
    """A Kubernetes API in memory, whose objects appear in the cache as through watches.

    Attributes:
        away: whether it answers no request.
    """

    namespace = "fleet"

    def __init__(self, cache: ObjectCache) -> None:
        self._cache = cache
        self.away = False
        self.live: dict[str, K8sObject] = {}
        self.calls: Counter[str] = Counter()
        self._version = 0

    def write(self, obj: K8sObject) -> K8sObject:
        """Store an object as a new version, and show it."""
        self._version += 1
        key = object_key(obj)
        meta = {"uid": key, "generation": 1, **obj["metadata"]}
        meta |= {"resourceVersion": str(self._version), "managedFields": MANAGERS}
        live = self.live[key] = {**obj, "metadata": meta}
        self._cache.note("MODIFIED", live)
        return live

    def lose(self, key: str) -> None:
        """Lose an object, and show that."""
        self._cache.note("DELETED", self.live.pop(key))

    def relist(self) -> None:
        """Show all ConfigMaps again, as a list does."""
        for kind in KINDS:
            if kind.kind == "ConfigMap":
                self._cache.replace(kind, [{**live} for key, live in self.live.items() if key.startswith("ConfigMap/")])

    async def get(self, key: str) -> K8sObject | None:
        """Return an object."""
        self._check_away()
        self.calls["get"] += 1
        return self.live.get(key)

    async def apply(self, obj: K8sObject) -> K8sObject:
        """Apply an object."""
        self._check_away()
        self.calls["apply"] += 1
        return self.write(obj)

    def _check_away(self) -> None:
        if self.away:
            raise ClusterUnavailable("nobody answers")

    async def list_pods(self, _: Any) -> list[K8sObject]:
        """Return no pods."""
        self.calls["list pods"] += 1
        return []

    async def delete(self, key: str, uid: str) -> None:
        """Delete an object."""
        assert uid == key
        self.calls["delete"] += 1
        self.lose(key)


class FleetEngine:
    """An engine that writes the objects of a stack, and counts its operations."""

    def __init__(self, api: FleetApi) -> None:
        self._api = api
        self.applied: list[str] = []

    async def apply(self, stack: StackSpec) -> ChangeSet:
        """Write all objects."""
        if self._api.away:
            raise EngineUnavailable("the Kubernetes API cannot be reached")
        self.applied.append(stack.name)
        written = [self._api.write(as_applied(obj, self._api.namespace)) for obj in stack.objects]
        return ChangeSet((), 0.0, {live_key(live): live["metadata"]["resourceVersion"] for live in written})

    async def stop(self) -> None:
        """Do nothing."""


class Fleet:
    """A fleet of stacks of five objects, and the parts of the Sentinel that keep them.

    Args:
        node: the account that declares the stacks and reports them.
        folder: the volume.
        data: the data of an earlier process; None: new data.
        live: the objects that exist.
        lanes: how many operations run in parallel.
    """

    def __init__(
        self,
        node: Node,
        folder: Path,
        data: SentinelData | None = None,
        live: Mapping[str, K8sObject] | None = None,
        lanes: LaneCounts | None = None,
    ) -> None:
        self.data = data or _new_data(node)
        self.node, self.account = node, str(node.account_id)
        cache, authority, store = ObjectCache(), Authority(), StackStore(folder / "stacks")
        self.api: Any = FleetApi(cache)
        self.engine: Any = FleetEngine(self.api)
        vault = Vault(folder / "vault", SecretStr("a passphrase"))
        repairer = DriftRepairer(self.api, cache, store, vault, authority)
        self.guard = Guard(self.api, cache, PodCache(), store, vault, authority, repairer)
        self.api.live = dict(live or {})
        for kind in KINDS:
            cache.replace(kind, [each for each in self.api.live.values() if each["kind"] == kind.kind])
        group = SimpleNamespace(role_of=lambda _: "admin")
        rcb = SimpleNamespace(
            is_granted=lambda _: True,
            root=SimpleNamespace(group=group),
            permissions=lambda: (),
            permissions_of=lambda _: (),
        )
        replica: Any = SimpleNamespace(node=node, rcb=rcb, settings=SimpleNamespace())
        lease: Any = SimpleNamespace(check=self._check)
        self.term = Term(
            TermContext(replica, self.data, self.guard, self.engine, lease, lanes=lanes or LaneCounts(4, 2))
        )

    def declare(self, name: str) -> None:
        """Declare a stack."""
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(name, name)}
        spec = {"podSelector": {"matchLabels": {"app": name}}, "policyTypes": ["Ingress"]}
        policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata(name, name)}
        objects = (
            account,
            config_map(name, name, value="x" * 200),
            service(name, name),
            policy | {"spec": spec},
            workload("Deployment", name, name, replicas=0),
        )
        document = DesiredStack(name, self.account, objects).document()
        self.data.desired.set(name, self.data.declarers.create_map(document).id)

    def show(self, name: str, generation: int) -> None:
        """Let the watch show a change of the Deployment of a stack."""
        live = self.api.live[f"Deployment/{name}"]
        self.api.write({**live, "status": {"observedGeneration": generation}})

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Let the guard and the term run while the block is open, from the moment when all is applied."""
        self.guard.authority.lead()
        repairer = self.guard.repairer
        parts = (repairer, repairer.verified, repairer.availability)
        tasks = [asyncio.create_task(part.run()) for part in parts]
        try:
            async with self.term.running():
                await self.settled()
                yield
        finally:
            for task in tasks:
                task.cancel()

    async def settled(self) -> None:
        """Wait until no part has anything to do."""
        term, repairer = self.term, self.guard.repairer
        queues = (
            *(term._reads, term._stacks, term._previews, term._reporter.queue, term._pruner._queue),
            *(repairer._queue, repairer.verified.queue),
        )
        await self.node.flush()  # listeners hear of a change before it is sent
        while not all(queue.idle for queue in queues):
            for queue in queues:
                await queue.wait_idle()
            await self.node.flush()

    async def _check(self) -> None:
        """Hold the lease."""


def _new_data(node: Node) -> SentinelData:
    declarers, readers, operators = node.create_group(), node.create_group(), node.create_group()
    owned = {
        declarers: ("desired", "previews"),
        readers: ("reports", "results", "held", "answers", "owners"),
        operators: ("confirmed", "requests"),
    }
    maps: dict[str, Any] = {name: group.create_map() for group, names in owned.items() for name in names}
    root = node.create_group().create_map({"careful": False})
    live = {kind.kind: node.create_group() for kind in KINDS}
    return SentinelData(root, declarers, readers, live, operators, **maps)
