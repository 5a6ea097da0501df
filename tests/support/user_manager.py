"""The user manager on a cluster with a real Alpha, which loads its image; its program runs in this process."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import yaml
from integration.alpha.test_system_load import push_system
from support.replicas import call

from reside.alpha import bootstrap
from reside.jazz import Credentials
from reside.replica import ReplicaSettings, load_contract
from reside.replica.background import in_background
from reside.users.app import declare
from reside.users.contract import USER_MANAGER_CONTRACT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.alpha_cluster import AlphaCluster, Client, Servers

    from reside.model.manifest import ContractManifest
    from reside.replica import Context, Replica

FOLDER = Path(__file__).parents[2] / "replicas" / "user-manager"
IMAGE = "reside/replicas/user-manager:v1"


def contract() -> ContractManifest:
    """Return the manifest of the contract as it is shipped."""
    return load_contract(FOLDER / "user-manager.v1" / "contract.yaml")


async def push(servers: Servers) -> None:
    """Push the images of the contract and of the replica, with the manifests that are shipped."""
    declared = contract().model_dump(mode="json", by_alias=True, include={"permissions", "methods"})
    await servers.push("reside/contracts/user-manager.v1", type="contract", **declared)
    manifest: dict[str, Any] = yaml.safe_load((FOLDER / "replica.yaml").read_text())
    await servers.push(IMAGE, **manifest)


@dataclass(frozen=True)
class Loaded:
    """The replicas that a cluster has loaded for tests, with their credentials."""

    cluster: AlphaCluster
    accounts: dict[str, Credentials]

    @asynccontextmanager
    async def running(self, name: str, replica: Replica, *, main: bool = True) -> AsyncIterator[Context]:
        """Run a replica in this process, and its own code if `main` is true, while the block is open."""
        found = await self.cluster.replica(name)
        members = self.cluster.servers.members(self.accounts[found.account], found.control_block, name)
        settings = ReplicaSettings(**members)
        own = replica.declaration.main
        async with replica.start(settings) as context:
            loops = {"main": lambda: own(context)} if main and own is not None else {}
            async with in_background(**loops):
                yield context

    @asynccontextmanager
    async def user_manager(self, *, main: bool = True) -> AsyncIterator[Context]:
        """Run the user manager as `running` does."""
        async with self.running("user-manager", declare(contract()), main=main) as context:
            yield context


async def load(cluster: AlphaCluster, admin: Client, *images: str) -> Loaded:
    """Let Alpha load itself and these images, and keep the credentials that it makes."""
    made: list[Credentials] = []
    real = Credentials.generate

    def record() -> Credentials:
        made.append(real())
        return made[-1]

    with patch.object(Credentials, "generate", record):
        await bootstrap.load_system(cluster.alpha, await push_system(cluster.servers))
        for image in images:
            await admin.load(image)
    return Loaded(cluster, {account.account_id: account for account in made})


async def ask(context: Context, client: Client, method: str, **body: Any) -> Any:
    """Call a method of a running user manager as a client."""
    return await call(context, client.credentials, method, body, contract=USER_MANAGER_CONTRACT)
