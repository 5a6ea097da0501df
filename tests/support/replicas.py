"""An environment for replicas without Alpha: a real sync server, a real etcd, and an account that acts as Alpha."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2
from support.etcd import EtcdServer, etcd_server
from support.jazz_server import JazzServer, jazz_server

from reside.common.tls import trusted_authorities
from reside.model import identities
from reside.model.constants import OWN
from reside.model.endpoints import rpc_path
from reside.model.manifest import ContractManifest
from reside.model.permissions import Grant, PermissionRef
from reside.replica import Replica
from reside.replica.client import RETRY_WITHIN_S, call_method
from reside.testing import Identity, SmallAlpha, small_alpha

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from reside.jazz import AccountId, Credentials, Node
    from reside.replica import Context, Json, ReplicaSettings

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


class AlphaDouble(SmallAlpha):
    """The small Alpha of `reside.testing` at servers that a test may stop."""

    def __init__(self, node: Node, servers: Servers) -> None:
        super().__init__(node, servers.jazz.url, [servers.etcd.url])
        self.servers = servers


def environment(identity: Identity, port: int) -> dict[str, str]:
    """Return the environment of a process that runs a replica on a loopback port."""
    return variables(identity.settings, port)


def variables(settings: ReplicaSettings, port: int) -> dict[str, str]:
    """Return the environment of a process with these settings, on a loopback port."""
    return {
        **{name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ},
        **({identities.VARIABLE: identities.repository()} if identities.repository() != OWN else {}),
        "RESIDE_REPLICA_NAME": settings.replica_name,
        "RESIDE_CONTROL_BLOCK_ID": settings.control_block_id,
        "RESIDE_ACCOUNT_ID": settings.account_id,
        "RESIDE_AGENT_SECRET": settings.agent_secret.get_secret_value(),
        "RESIDE_SYNC_SERVER_URL": settings.sync_server_url,
        "RESIDE_ETCD_HOSTS": ",".join(settings.etcd_hosts),
        "RESIDE_LISTEN_HOST": "127.0.0.1",
        "RESIDE_LISTEN_PORT": str(port),
    }


@asynccontextmanager
async def run_alpha_double(servers: Servers) -> AsyncIterator[AlphaDouble]:
    """Register an account at running servers, and yield it as Alpha's test double."""
    async with small_alpha(servers.jazz.url, [servers.etcd.url]) as made:
        yield AlphaDouble(made.node, servers)


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
    "environment",
    "run_alpha_double",
]
