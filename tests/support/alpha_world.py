"""A cluster whose Alpha is killed again and again: servers, a fake Sentinel, a client, and one life after another.

It runs on real servers, or in memory (`memory_servers`).
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2
from support.alpha_cluster import HOST, Servers, alpha_settings
from support.alpha_lives import Hosts, Life
from support.cluster_invariants import faults, unfinished
from support.cluster_picture import History, take_picture
from support.eventually import _pauses
from support.fake_sentinel import Cluster, Orders, fake_sentinel
from support.memory_sync import MemorySync

from reside.alpha import bootstrap, records
from reside.alpha.loading.approve import approve
from reside.alpha.loading.create import create_request
from reside.alpha.loading.validate import validate
from reside.common.tls import trusted_authorities
from reside.jazz import Credentials, Node, now_ms
from reside.locks import LockService
from reside.model import constants
from reside.replica import ReplicaSettings
from reside.testing import MemoryEtcd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    import pytest
    from support.cluster_picture import Picture

    from reside.model.entities import LoadRequest, Replica

GREETING = f"{HOST}/contracts/greeting.v1"
_WITHIN_S = 120.0


class Clock:
    """The clock of all nodes of a cluster, which the test puts forward."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def __call__(self) -> int:
        """Return ms since the epoch."""
        return now_ms() + self.ahead_ms


@dataclass
class World:
    """A cluster.

    Attributes:
        servers: its servers.
        hosts: what the lives of its Alpha share.
        sentinel: its fake Sentinel.
        orders: how the Sentinel behaves.
        client: an account that asks for loads.
        clock: the time of all nodes but the Sentinel's.
        history: what earlier pictures have shown.
    """

    servers: Servers
    hosts: Hosts
    sentinel: Cluster
    orders: Orders
    client: Node
    clock: Clock
    history: History = field(default_factory=History)
    _group: Any = None
    _names: int = 0

    async def push_images(self) -> None:
        """Push a contract, two versions of a greeter that implements it, and three of a worker that requires it."""
        info = {"class": "long-running", "exclusive": True, "scalable": True}
        permissions: dict[str, Any] = {"greet": {}, "wave": {}}
        await self.servers.push(
            "contracts/greeting.v1", type="contract", permissions=permissions, methods={"greet": {}}
        )
        for version in (1, 2):
            await self._push(
                f"greeter:v{version}", info=info | {"name": "greeter"}, implementations={"g": {"identity": GREETING}}
            )
        for version, wanted in ((1, ["greet"]), (2, ["greet", "wave"]), (3, ["wave"])):
            needs = {"greeting": {"identity": GREETING, "permissions": [{"name": name} for name in wanted]}}
            await self._push(
                f"worker:v{version}",
                info=info | {"name": "worker", "exclusive": False},
                requirements=needs,
                displayInfo={"en": {"title": f"version {version}"}},
            )

    async def _push(self, image: str, **manifest: Any) -> None:
        digest = await self.servers.push(f"examples/{image}", type="replica", **manifest)
        self.history.digests[f"{HOST}/examples/{image}"] = digest

    def new_name(self) -> str:
        """Return a name that no replica has had."""
        self._names += 1
        return f"worker-n{self._names}"

    async def spec(self, image: str, **members: Any) -> str:
        """Write a load request value as the client, and return its id."""
        if self._group is None:
            self._group = self.client.create_group()
            await self._group.add_member(self.hosts.credentials.account_id, "reader")
        value = self._group.create_map({"image": f"{HOST}/examples/{image}", **members})
        await self.client.flush()
        return str(value.id)

    async def created(self, life: Life, image: str, **members: Any) -> int:
        """Create a load request, and return its id."""
        spec = await self.spec(image, **members)
        return (await create_request(life.alpha, spec, self.client.account_id)).value.id

    async def validated(self, life: Life, number: int) -> LoadRequest:
        """Validate a request in a life that does not lead."""
        async with asyncio.timeout(_WITHIN_S):
            while True:
                await validate(life.alpha, number)
                found = (await records.find_request(life.alpha.data, number)).value
                if found.status != "validating":
                    return found
                await asyncio.sleep(0.001)

    async def approved(self, life: Life, image: str, **members: Any) -> int:
        """Create, validate and approve a request in a life that does not lead, and return its id."""
        number = await self.created(life, image, **members)
        request = await self.validated(life, number)
        assert request.status == "requires-approval", request.error_message
        await approve(life.alpha, number, str(request.revision), {})
        return number

    async def loaded(self, life: Life, image: str, **members: Any) -> Replica:
        """Load an image in a life that leads, wait until everything is done, and return the replica."""
        number = await self.created(life, image, **members)
        await self.settled(life)
        request = await self.request(life, number)
        assert request.status == "requires-approval", request.error_message
        await approve(life.alpha, number, str(request.revision), {})
        await self.settled(life)
        target = (await self.request(life, number)).target_replica
        found = await records.find_replica(life.alpha.data, target or 0)
        assert found is not None
        return found.value

    async def request(self, life: Life, number: int) -> LoadRequest:
        """Return a request."""
        return (await records.find_request(life.alpha.data, number)).value

    async def replica(self, life: Life, number: int) -> records.ReplicaRecord:
        """Return a replica by id."""
        found = await records.find_replica(life.alpha.data, number)
        assert found is not None, f"there is no replica {number}"
        return found

    async def settled(
        self, life: Life, what: str = "the leader to finish everything", *, whole: bool = False
    ) -> Picture:
        """Wait until a life that leads has nothing more to do, and return the picture; no fault may be seen meanwhile.

        Args:
            life: the life.
            what: what happened before, for the message.
            whole: whether to look at requests again that were finished.
        """
        missing: list[str] = []
        try:
            async with asyncio.timeout(_WITHIN_S):
                for pause in _pauses(0.05):
                    await life.idle()
                    await life.node.catch_up()
                    picture = await take_picture(life.alpha, self.history, whole=whole)
                    found = faults(picture, self.history)
                    assert not found, f"{what}: {found}"
                    missing = unfinished(picture)
                    if not missing:
                        return picture
                    await asyncio.sleep(pause)
            raise AssertionError("the pauses never end")
        except TimeoutError:
            raise AssertionError(f"{what}: unfinished after {_WITHIN_S:g} s: {missing}") from None


def memory_servers(monkeypatch: pytest.MonkeyPatch, registry: Any) -> tuple[Servers, Callable[[], MemoryEtcd]]:
    """Return servers in memory, and the network to their etcd; programs of this process use them by their addresses."""
    sync, etcd = MemorySync(), MemoryEtcd()
    sync.install(monkeypatch)

    def locks(*arguments: Any, **options: Any) -> LockService:
        return LockService(*arguments, **{**options, "transport": etcd})

    for module in ("reside.alpha.bootstrap", "reside.replica.lifecycle"):
        monkeypatch.setattr(f"{module}.LockService", locks)
    return Servers(sync, _Address("http://memory"), registry), lambda: etcd  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Address:
    url: str


@asynccontextmanager
async def run_world(servers: Servers, network: Callable[[], httpx2.AsyncBaseTransport]) -> AsyncIterator[World]:
    """Run a bootstrapped cluster without an Alpha."""
    clock, orders = Clock(), Orders()
    alpha, sentinel = Credentials.generate(), Credentials.generate()
    blocks = await bootstrap.prepare(servers.jazz.url, (servers.etcd.url,), alpha, sentinel)
    settings = ReplicaSettings(**servers.members(sentinel, blocks.sentinel, constants.SENTINEL_NAME))
    async with (
        httpx2.AsyncClient(verify=trusted_authorities(), trust_env=False) as http,
        Node(servers.jazz.url, Credentials.generate(), clock=clock) as client,
        fake_sentinel(settings, orders) as cluster,
    ):
        await client.register("client")
        hosts = Hosts(alpha_settings(servers, alpha, blocks.alpha), alpha, network, http, clock)
        world = World(servers, hosts, cluster, orders, client, clock)
        await world.push_images()
        first = await Life.begin(hosts)
        await bootstrap.until_granted(first.alpha, blocks.sentinel)
        await first.end()
        try:
            yield world
        finally:
            await hosts.forget_users()
