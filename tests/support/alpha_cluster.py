"""A cluster for tests of Alpha: real sync server, etcd and registry; Alpha itself; a fake Sentinel; clients."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2
from support.etcd import EtcdServer, etcd_server, forget_users
from support.eventually import eventually
from support.fake_sentinel import Cluster, Orders, fake_sentinel
from support.jazz_server import JazzServer, jazz_server
from support.registry import Registry, registry
from support.replica_environment import replica_members

from reside.alpha import bootstrap, records
from reside.alpha.app import started
from reside.alpha.granting.control_blocks import opened
from reside.alpha.loop import lead
from reside.alpha.settings import AlphaSettings
from reside.cli.loading import APPROVALS
from reside.common.tls import trusted_authorities
from reside.jazz import Credentials, Node
from reside.model import constants, identities
from reside.model.alpha_contract import SUPER_ADMIN_PERMISSIONS
from reside.model.endpoints import rpc_path
from reside.model.errors import Conflict
from reside.model.locations import located
from reside.model.manifest import encode_label, parse_manifest
from reside.model.sentinel_data import preview_key
from reside.registry import ImageReference, RegistryClient
from reside.replica import ReplicaSettings
from reside.replica.client import call_method

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from reside.alpha.state import Alpha
    from reside.jazz import CoMap
    from reside.model.entities import LoadRequest, Replica
    from reside.model.permissions import ControlBlockPermission
    from reside.model.previews import StackPreview

CODE = "one-time-code"
HOST = constants.RESIDE_REGISTRY
_WITHIN_S = 120.0


@dataclass(frozen=True)
class Servers:
    """The servers of a cluster."""

    jazz: JazzServer
    etcd: EtcdServer
    registry: Registry

    def members(self, credentials: Credentials, block: str, name: str) -> dict[str, Any]:
        """Return the settings of a replica."""
        return replica_members(self.jazz.url, self.etcd.url, credentials, block, name)

    async def push(self, image: str, label: str | None = None, **manifest: Any) -> str:
        """Push a label image of a manifest, or of a raw label, and return its digest.

        Args:
            image: reference below the registry, e.g. `examples/greeter:v1`.
            label: the label's value; None: the encoded manifest.
            manifest: members of the manifest; `identity` defaults to that of the image.
        """
        reference = ImageReference.parse(f"{HOST}/{image}")
        if label is None:
            label = encode_label(parse_manifest({"identity": reference.identity, **manifest}))
        client = RegistryClient(self.registry.mirrors, locate=lambda name: located(name, identities.repository()))
        labels = {constants.MANIFEST_LABEL: label, "unique": image} if label else {"unique": image}
        return await client.push_label_image(reference, labels)


@contextmanager
def run_servers(folder: Path, *, mode: str = "members", erase_s: int = 60) -> Iterator[Servers]:
    """Run the servers while the block is open, with the sync server in a mode and its pause between erasures."""
    with (
        jazz_server(MODE=mode, ERASE_S=str(erase_s)) as jazz,
        etcd_server() as etcd,
        registry(folder / "registry") as images,
    ):
        yield Servers(jazz, etcd, images)


@dataclass
class AlphaCluster:
    """A bootstrapped cluster with a running Alpha."""

    servers: Servers
    credentials: Credentials
    sentinel_credentials: Credentials
    blocks: bootstrap.SystemBlocks
    orders: Orders
    sentinel: Cluster
    alpha: Alpha
    endpoint: str
    leading: asyncio.Task[None] | None = None
    accounts: dict[str, Credentials] = field(default_factory=dict)
    clients: AsyncExitStack = field(default_factory=AsyncExitStack)
    """Closes the nodes of the clients."""

    def settings(self) -> AlphaSettings:
        """Return Alpha's settings, as its pod has them."""
        return alpha_settings(self.servers, self.credentials, self.blocks.alpha)

    async def client(self, name: str = "user") -> Client:
        """Return a client with a newly registered account and a node of its own."""
        credentials = Credentials.generate()
        node = await self.clients.enter_async_context(Node(self.servers.jazz.url, credentials))
        await node.register(name)
        await node.flush()
        return Client(self, credentials, node)

    async def admin(self) -> Client:
        """Return a client that has claimed super admin access."""
        client = await self.client("admin")
        await client.call("claim-super-admin", {"code": CODE})
        await eventually(
            "the super admin's permissions",
            lambda: all(client.has(name) for name in SUPER_ADMIN_PERMISSIONS),
            within=_WITHIN_S,
        )
        return client

    async def replica(self, name: str) -> Replica:
        """Return a replica by name."""
        found = [r.value for r in await records.all_replicas(self.alpha.data) if r.value.name == name]
        assert len(found) == 1, f"{len(found)} replicas are called {name}"
        return found[0]

    async def permissions(self, name: str) -> list[ControlBlockPermission]:
        """Return the entries of a replica's control block."""
        async with opened(self.alpha.node, (await self.replica(name)).control_block) as block:
            return list(block.permissions())

    async def names(self) -> dict[int, str]:
        """Return the names of all replicas by id."""
        return {r.value.id: r.value.name for r in await records.all_replicas(self.alpha.data)}

    async def change_settings(self, **settings: Any) -> None:
        """Change settings of the cluster, as the bootstrap does."""
        await bootstrap.store_settings(self.alpha, self.alpha.cluster.model_copy(update=settings))

    async def replace_previews(self) -> None:
        """Let the Sentinel replace the maps of previews, and wait until Alpha sees the new ones."""
        replaced = (await self.alpha.sentinel.open()).previews.id
        await self.sentinel.replace_previews()
        await eventually(
            "the new maps of previews",
            self.alpha.sentinel.open,
            lambda maps: maps.previews.id != replaced,
            within=_WITHIN_S,
        )

    async def make_overdue(self, name: str, number: int) -> None:
        """Let the deadline of a version that starts have passed. No Alpha may lead."""
        record = await records.find_replica(self.alpha.data, (await self.replica(name)).id)
        assert record is not None
        version = record.value.version(number)
        assert version.starting_since is not None
        since = version.starting_since - 1000 * (version.health.deadline_s + 1)
        record.versions[number].set("startingSince", since)
        await self.alpha.node.flush()

    def lead(self) -> None:
        """Start the leader's loop."""
        self.leading = asyncio.create_task(lead(self.alpha), name="lead")

    async def stop_leading(self) -> None:
        """Cancel the leader's loop at any point, and wait until it ends."""
        if self.leading is not None:
            self.leading.cancel()
            await asyncio.gather(self.leading, return_exceptions=True)
            self.leading = None

    async def has_status(self, name: str, *statuses: str) -> None:
        """Wait until the versions of a replica have these statuses."""

        async def look() -> list[str]:
            if name not in (await self.names()).values():
                return []  # the leader has not created the replica yet
            return [v.status for v in (await self.replica(name)).versions]

        expected = list(statuses)
        await eventually(f"{name} to be {expected}", look, lambda seen: seen == expected, within=_WITHIN_S)


@dataclass
class Client:
    """An account that calls Alpha as the CLI does."""

    cluster: AlphaCluster
    credentials: Credentials
    node: Node

    def has(self, permission: str) -> bool:
        """Return whether Alpha has granted a permission to this client."""
        block = self.cluster.alpha.context.rcb
        return any(
            p.ref.account == self.credentials.account_id
            and p.ref.name == permission
            and p.current
            and p.current.granted
            for p in block.permissions()
        )

    async def call(self, method: str, body: dict[str, Any], *, endpoint: str | None = None) -> Any:
        """Call a method of Alpha over HTTP."""
        context = self.cluster.alpha.context
        async with httpx2.AsyncClient(verify=trusted_authorities(), trust_env=False) as http:
            return await call_method(
                http,
                self.credentials,
                endpoint=endpoint or self.cluster.endpoint,
                receiver=context.node.account_id,
                path=rpc_path("alpha", constants.ALPHA_CONTRACT, method),
                body=body,
            )

    async def create_spec(self, **members: Any) -> CoMap:
        """Return a load request value that Alpha may read."""
        group = self.node.create_group()
        await group.add_member(self.cluster.alpha.context.node.account_id, "reader")
        value = group.create_map(members)
        await self.node.flush()
        return value

    async def create(self, image: str, **members: Any) -> int:
        """Create a load request for an image of the test's registry, and return its id."""
        answer = await self.call(
            "create-load-request", {"wish": (await self.create_spec(image=f"{HOST}/{image}", **members)).id}
        )
        return int(answer["id"])

    async def settled(self, number: int) -> LoadRequest:
        """Wait until a request is no longer `validating`, and return it."""
        return await self.cluster_request(number, lambda request: request.status != "validating")

    async def cluster_request(self, number: int, done: Callable[[LoadRequest], bool]) -> LoadRequest:
        """Wait until `done` returns true for a request, and return the request."""

        async def look() -> LoadRequest:
            return (await records.find_request(self.cluster.alpha.data, number)).value

        return await eventually(f"another state of request {number}", look, done, within=_WITHIN_S)

    async def preview_result(self, request: LoadRequest, holds: Callable[[StackPreview | None], bool]) -> None:
        """Wait until `holds` returns true for what the Sentinel says about the candidate of a request."""
        key = preview_key(request.id, str((request.preview or {})["revision"]))
        sentinel = self.cluster.alpha.sentinel
        await eventually(f"the preview {key}", lambda: sentinel.read_preview(key), holds, within=_WITHIN_S)

    async def approve(self, number: int, **members: Any) -> LoadRequest:
        """Approve the previewed revision of a request, wait for its version, and return the request."""
        request = await self.settled(number)
        assert request.status == "requires-approval", request.error_message
        assert request.preview is not None
        body = {"id": number, "revision": request.revision, **members}
        await self.call("approve-load-request", body)
        return await self.cluster_request(number, lambda r: r.version is not None)

    async def approve_latest(self, number: int, **members: Any) -> LoadRequest:
        """Approve a request as the command does: look at it again if cluster state changed after its preview."""
        for _ in range(APPROVALS):
            try:
                return await self.approve(number, **members)
            except Conflict as error:
                if "previewed again" not in str(error):
                    raise
        raise AssertionError(f"request {number} was previewed again each time")

    async def load(self, image: str, **members: Any) -> LoadRequest:
        """Create a load request, approve it, and return it with its version."""
        return await self.approve_latest(await self.create(image, **members))


def alpha_settings(
    servers: Servers, credentials: Credentials, block: str, repository: str | None = None
) -> AlphaSettings:
    return AlphaSettings(
        image_repository=repository,
        **servers.members(credentials, block, constants.ALPHA_NAME),
        namespace="reside",
        registry_mirrors=servers.registry.mirrors,
        claim_code=CODE,
    )


@asynccontextmanager
async def alpha_cluster(
    servers: Servers, *, leading: bool = True, repository: str | None = None
) -> AsyncIterator[AlphaCluster]:
    """Run a bootstrapped cluster: accounts, data, the fake Sentinel, Alpha with its permissions granted.

    Args:
        servers: what it runs on.
        leading: whether Alpha leads.
        repository: its image repository, which this process uses for identities while the block is open.
    """
    alpha_account, sentinel_account = Credentials.generate(), Credentials.generate()
    where = (servers.jazz.url, (servers.etcd.url,), alpha_account, sentinel_account)
    blocks = await bootstrap.prepare(*where, repository)
    orders = Orders()
    settings = ReplicaSettings(**servers.members(sentinel_account, blocks.sentinel, constants.SENTINEL_NAME))
    async with (
        fake_sentinel(settings, orders) as sentinel,
        started(alpha_settings(servers, alpha_account, blocks.alpha, repository)) as alpha,
        AsyncExitStack() as clients,
    ):
        endpoint = str(alpha.context.node.account.profile["endpoints"]["internal"])
        cluster = AlphaCluster(servers, alpha_account, sentinel_account, blocks, orders, sentinel, alpha, endpoint)
        cluster.clients = clients
        async with asyncio.timeout(_WITHIN_S):
            await bootstrap.until_granted(alpha, blocks.sentinel)
        if leading:
            cluster.lead()
        try:
            yield cluster
        finally:
            await cluster.stop_leading()
            await forget_users(servers.etcd, alpha_account)
            identities.use(constants.OWN)
