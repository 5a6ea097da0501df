"""A real Alpha that has loaded a greeter and the user manager, for each file of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support import user_manager
from support.alpha_cluster import HOST, AlphaCluster, Client, Servers, alpha_cluster, run_servers
from support.eventually import eventually

from reside.model.manifest import ContractManifest
from reside.replica import Call, Replica
from reside.users.contract import MANAGE_USERS, USER_MANAGER_CONTRACT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from support.user_manager import Loaded

    from reside.replica import Context, Json

GREETING = f"{HOST}/contracts/greeting.v1"
TIMES = {"type": "object", "properties": {"times": {"type": "integer", "maximum": 9}}}
CONTRACT: dict[str, Any] = {
    "permissions": {"greet": {"params": TIMES}, "wave": {}, "room": {"instanceKeys": ["room"]}},
    "methods": {"greet": {}},
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Yield a sync server, an etcd and a registry."""
    with run_servers(tmp_path_factory.mktemp("users")) as running:
        yield running


@pytest.fixture(scope="module")
async def cluster(servers: Servers) -> AsyncIterator[AlphaCluster]:
    """Yield a running Alpha, in a cluster with an identity repository of its own."""
    async with alpha_cluster(servers, repository=f"{HOST}/acme") as made:
        yield made


@pytest.fixture(scope="module")
async def admin(cluster: AlphaCluster) -> Client:
    """Return the super admin, who loads the replicas and may manage users once they are loaded."""
    return await cluster.admin()


@pytest.fixture(scope="module")
async def loaded(cluster: AlphaCluster, servers: Servers, admin: Client) -> Loaded:
    """Load the greeter and the user manager; the super admin may manage users."""
    await servers.push("contracts/greeting.v1", type="contract", **CONTRACT)
    info = {"name": "greeter", "class": "long-running", "exclusive": True, "scalable": True}
    served = {"greeting": {"identity": GREETING}}
    await servers.push("examples/greeter:v1", type="replica", info=info, implementations=served)
    await user_manager.push(servers)
    loaded = await user_manager.load(cluster, admin, "examples/greeter:v1", user_manager.IMAGE)
    await cluster.has_status("user-manager", "running")
    await permit(cluster, admin, admin, MANAGE_USERS)
    return loaded


async def permit(cluster: AlphaCluster, admin: Client, client: Client, permission: str) -> None:
    """Let Alpha expect a permission of the user manager for a client."""
    number = (await cluster.replica("user-manager")).id
    order = {"replica": number, "contract": USER_MANAGER_CONTRACT, "permission": permission}
    await admin.call("grant-permission", order | {"account": client.node.account_id})


@pytest.fixture(scope="module")
async def manager(cluster: AlphaCluster, loaded: Loaded, admin: Client) -> AsyncIterator[Context]:
    """Run the user manager until the end of the file, with its permissions and those of the super admin granted."""
    async with loaded.user_manager() as context:
        await eventually(
            "the manager's permission",
            lambda: any(p.in_force and p.ref.name == MANAGE_USERS for p in context.rcb.permissions()),
            within=60,
        )
        await eventually("Alpha's permissions", lambda: granted_by_alpha(cluster, context), within=60)
        yield context


def granted_by_alpha(cluster: AlphaCluster, context: Context) -> bool:
    """Return whether Alpha has granted both permissions that the user manager requires."""
    mine = [p for p in cluster.alpha.context.rcb.permissions() if p.ref.account == context.node.account_id]
    return len(mine) == 2 and all(p.in_force for p in mine)


@pytest.fixture(scope="module")
async def greeter(loaded: Loaded) -> AsyncIterator[Context]:
    """Run the greeter."""
    replica = Replica(ContractManifest.model_validate({"type": "contract", "identity": GREETING, **CONTRACT}))

    @replica.method(GREETING, "greet")
    async def greet(call: Call) -> Json:
        return call.params("greet")

    async with loaded.running("greeter", replica) as context:
        yield context
