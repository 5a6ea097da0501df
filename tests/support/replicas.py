"""An environment for replicas without Alpha: a real sync server, a real etcd, and an account that acts as Alpha."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2
from support.etcd import EtcdServer, etcd_server
from support.jazz_server import JazzServer, jazz_server

from reside.common.tls import trusted_authorities
from reside.jazz import Credentials, Node
from reside.model.endpoints import rpc_path
from reside.model.manifest import ContractManifest
from reside.model.permissions import Grant, PermissionRef
from reside.replica import ControlBlock, Replica, ReplicaSettings
from reside.replica.client import RETRY_WITHIN_S, call_method

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from reside.jazz import AccountId
    from reside.replica import Context, Json

_WITHIN_S = 60.0
GREETING = "registry.reside.internal/reside/contracts/greeting.v1"


def greeting_contract() -> ContractManifest:
    """Return a contract with the method and the permission `greet`, and a permission with an instance id."""
    return ContractManifest.model_validate(
        {
            "type": "contract",
            "identity": GREETING,
            "permissions": {"greet": {}, "greet:room": {"instanceKeys": ["room"]}},
            "methods": {"greet": {}, "fail": {}, "whoami": {}},
        }
    )


@dataclass(frozen=True)
class Servers:
    """The servers that replicas need."""

    jazz: JazzServer
    etcd: EtcdServer


@contextmanager
def run_servers() -> Iterator[Servers]:
    """Run a sync server and etcd while the block is open."""
    with jazz_server(MODE="members") as jazz, etcd_server() as etcd:
        yield Servers(jazz, etcd)


@dataclass(frozen=True)
class Identity:
    """An account with its control block."""

    credentials: Credentials
    settings: ReplicaSettings
    rcb: ControlBlock
    """The control block, loaded by the account that acts as Alpha."""

    def environment(self, port: int) -> dict[str, str]:
        """Return the environment of a process that runs this replica on a loopback port."""
        return {
            "PATH": os.environ["PATH"],
            "RESIDE_REPLICA_NAME": self.settings.replica_name,
            "RESIDE_CONTROL_BLOCK_ID": self.settings.control_block_id,
            "RESIDE_ACCOUNT_ID": self.settings.account_id,
            "RESIDE_AGENT_SECRET": self.settings.agent_secret.get_secret_value(),
            "RESIDE_SYNC_SERVER_URL": self.settings.sync_server_url,
            "RESIDE_ETCD_HOSTS": ",".join(self.settings.etcd_hosts),
            "RESIDE_LISTEN_HOST": "127.0.0.1",
            "RESIDE_LISTEN_PORT": str(port),
        }


class AlphaDouble:
    """The test double of Alpha: creates accounts and control blocks, and writes expected grants."""

    def __init__(self, node: Node, servers: Servers) -> None:
        self.node = node
        self.servers = servers
        self._count = 2

    async def identity(self, name: str) -> Identity:
        """Return a new registered account with an empty control block."""
        self._count += 1
        credentials = await self.account(name)
        group = self.node.create_group()
        await group.add_member(credentials.account_id, "writer")
        permissions = group.create_map({})
        root = group.create_map({"id": self._count, "name": name, "requirements": {}, "permissions": permissions.id})
        await self.node.flush()
        settings = ReplicaSettings(
            replica_name=name,
            control_block_id=root.id,
            account_id=credentials.account_id,
            agent_secret=credentials.agent_secret,
            sync_server_url=self.servers.jazz.url,
            etcd_hosts=(self.servers.etcd.url,),
            listen_host="127.0.0.1",
            listen_port=0,
        )
        return Identity(credentials, settings, await ControlBlock.load(self.node, root.id))

    async def account(self, name: str) -> Credentials:
        """Return a registered account."""
        credentials = Credentials.generate()
        async with Node(self.servers.jazz.url, credentials) as node:
            await node.register(name)
        return credentials

    async def expect(self, identity: Identity, ref: PermissionRef, grant: Grant) -> None:
        """Write an expected grant into a control block, as Alpha does."""
        await identity.rcb.set_expected(ref, grant)
        await self.node.flush()

    async def until_current(self, identity: Identity, ref: PermissionRef, grant: Grant) -> None:
        """Wait until `grant` is the current grant of `ref`."""
        await until(identity.rcb, lambda: (found := identity.rcb.find(ref)) is not None and found.current == grant)


async def until(block: ControlBlock, holds: Any) -> None:
    """Wait until a condition holds for a control block; it is checked after each change of the block."""
    changed = block.watch()
    try:
        async with asyncio.timeout(_WITHIN_S):
            await block.refresh()
            while not holds():
                await changed.wait()
                changed.clear()
                await block.refresh()
    except TimeoutError:
        raise AssertionError(f"the control block still has {list(block.permissions())}") from None


@asynccontextmanager
async def run_alpha_double(servers: Servers) -> AsyncIterator[AlphaDouble]:
    """Register an account at running servers, and yield it as Alpha's test double."""
    credentials = Credentials.generate()
    async with Node(servers.jazz.url, credentials) as node:
        await node.register("alpha")
        yield AlphaDouble(node, servers)


async def call(
    context: Context,
    credentials: Credentials,
    method: str,
    body: dict[str, Any],
    *,
    contract: str = GREETING,
    receiver: AccountId | None = None,
    within_s: float = RETRY_WITHIN_S,
) -> Json:
    """Call a running replica over HTTP as a client."""
    async with httpx2.AsyncClient(verify=trusted_authorities(), trust_env=False) as http:
        return await call_method(
            http,
            credentials,
            endpoint=endpoint_of(context),
            receiver=receiver or context.node.account_id,
            path=rpc_path(context.name, contract, method),
            body=body,
            within_s=within_s,
        )


def endpoint_of(context: Context) -> str:
    """Return the internal endpoint of a running replica."""
    return str(context.node.account.profile["endpoints"]["internal"])


__all__ = [
    "GREETING",
    "AlphaDouble",
    "Grant",
    "Identity",
    "PermissionRef",
    "Replica",
    "Servers",
    "call",
    "run_alpha_double",
]
