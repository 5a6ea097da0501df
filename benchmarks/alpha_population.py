"""A cluster with many replicas and finished load requests for `benchmarks/alpha.py`, written without loads.

Replicas are what loads would have left: three versions of which the last one runs, account, control block, look-ups,
expected grants, the desired stack. One in ten is a hub with a contract of its own, which the nine after it require.
They are written by Alpha's own functions, under no lock, because nothing else runs. The data is kept in a folder, so
that another run, perhaps of other code, measures the same cluster.
"""

from __future__ import annotations

import json
import shutil
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr
from support.alpha_cluster import CODE
from support.etcd import EtcdServer
from support.fake_sentinel import Cluster, Orders, fake_sentinel
from support.jazz_server import JazzServer
from support.registry import Registry, registry
from support.replica_environment import replica_members

from reside.alpha import bootstrap, contracts, lookups, records
from reside.alpha.app import started
from reside.alpha.finished_requests import index
from reside.alpha.granting import control_blocks
from reside.alpha.granting.blocks import Blocks
from reside.alpha.lookups import Reservation
from reside.alpha.rollouts import reconcile_replica
from reside.alpha.settings import AlphaSettings
from reside.alpha.state import Alpha
from reside.alpha.versions import index_versions
from reside.jazz import Credentials, Node
from reside.model import constants, lookup
from reside.model.alpha_contract import DEPENDANTS_LISTED
from reside.model.manifest import ContractManifest
from reside.replica import ReplicaSettings
from reside.replica.transactions import Transaction

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

HUB_EVERY, VERSIONS = 10, 3
_GROUP_OF = 50
"""Finished requests that are written together."""
_OF_REPLICA = 10
"""Finished requests of a replica: as many as are kept."""


@dataclass
class Servers:
    """Servers with data in one folder, and the accounts of the cluster on them."""

    folder: Path
    jazz: JazzServer
    etcd: EtcdServer
    images: Registry
    alpha: Credentials
    sentinel: Credentials
    admin: Credentials
    blocks: bootstrap.SystemBlocks
    sentinel_data: Cluster

    def members(self, credentials: Credentials, block: str, name: str) -> dict[str, Any]:
        """Return the settings of a replica."""
        return replica_members(self.jazz.url, self.etcd.url, credentials, block, name)

    def settings(self, port: int = 0) -> AlphaSettings:
        """Return Alpha's settings."""
        return AlphaSettings(
            **self.members(self.alpha, self.blocks.alpha, constants.ALPHA_NAME) | {"listen_port": port},
            namespace="reside",
            registry_mirrors=self.images.mirrors,
            claim_code=SecretStr(CODE),
        )


@asynccontextmanager
async def cluster_in(folder: Path) -> AsyncIterator[Servers]:
    """Run the servers of a cluster and a fake Sentinel on the data in a folder, which may be empty."""
    for name in ("jazz", "etcd", "registry"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    known = _accounts(folder / "accounts.json")
    jazz = JazzServer(folder / "jazz", {"MODE": "members", "ERASE_S": "5"})
    etcd = EtcdServer(folder / "etcd", "--bcrypt-cost", "4")  # the default costs 60 ms of CPU for each replica
    try:
        jazz.start()
        etcd.start()
        with registry(folder / "registry") as images:
            blocks = await bootstrap.prepare(jazz.url, (etcd.url,), known["alpha"], known["sentinel"])
            made = Servers(folder, jazz, etcd, images, **known, blocks=blocks, sentinel_data=None)  # type: ignore[arg-type]
            members = made.members(known["sentinel"], blocks.sentinel, constants.SENTINEL_NAME)
            settings = ReplicaSettings(**members)
            async with fake_sentinel(settings, Orders()) as made.sentinel_data:
                yield made
    finally:
        jazz.stop()
        etcd.kill()


def copy(source: Path, target: Path) -> None:
    """Copy the data of a cluster that does not run."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)


async def populate(servers: Servers, *, replicas: int, requests: int) -> None:
    """Add replicas and finished requests until there are so many."""
    async with started(servers.settings(), serve=False) as alpha:
        await bootstrap.until_granted(alpha, servers.blocks.sentinel)
        bulk = _Bulk(alpha.context, alpha.data, alpha.cluster, alpha.sentinel)
        bulk.lock_users = set()
        blocks = Blocks(bulk.data, lambda _account: None)
        have = len(bulk.data.replicas.as_list())
        for number in range(have, replicas):
            record = await _replica(bulk, number)
            await reconcile_replica(bulk, blocks, record)
        await _upgrade(bulk)
        finished = await index(bulk.data)
        for first in range(len(finished), requests, _GROUP_OF):
            await _finished_requests(bulk, first, min(_GROUP_OF, requests - first))
        await alpha.node.flush(timeout=120.0)
        blocks.close()


async def _upgrade(alpha: Alpha) -> None:
    """Index the versions of replicas that an earlier release has written, as its first leader would."""
    for co_id in alpha.data.replicas.as_list():
        await index_versions(alpha.data, await records.read_outline(alpha.data, co_id))
    alpha.data.root.set(DEPENDANTS_LISTED, True)


async def _replica(alpha: Alpha, index: int) -> records.ReplicaRecord:
    """Write one replica with three versions, and what its account needs."""
    data, number, is_hub = alpha.data, constants.FIRST_FREE_ID + index, index % HUB_EVERY == 0
    name = f"hub-{index}" if is_hub else f"worker-{index}"
    hub = await lookups.find(data, lookup.replica_by_name(f"hub-{index // HUB_EVERY * HUB_EVERY}"))
    provider = None if hub is None else (await records.read_replica(data, hub)).value
    if is_hub:
        await contracts.refresh(data, hub_contract(index))
    credentials = Credentials.generate()
    async with Node(alpha.context.settings.sync_server_url, credentials) as node:
        await node.register(name)
        await node.flush()
    account = credentials.account_id
    block = await control_blocks.make_block(data, number, name, account)
    versions = [
        data.replicas_group.create_map(_version(version, index, provider, is_hub=is_hub))
        for version in range(1, VERSIONS + 1)
    ]
    made = data.replicas_group.create_map(
        {
            "id": number,
            "name": name,
            "identity": f"{constants.RESIDE_REGISTRY}/bench/{name}",
            "info": {"name": name, "class": "long-running", "exclusive": True, "scalable": True},
            "account": account,
            "owner": alpha.account,
            "controlBlock": block,
            "management": data.management_group.create_map({"enabled": True}).id,
            "versions": data.replicas_group.create_list([version.id for version in versions]).id,
            "currentVersion": VERSIONS,
        }
    )
    await lookups.set_target(data, lookup.replica_by_id(number), made.id)
    await lookups.set_target(data, lookup.replica_by_name(name), made.id)
    await lookups.add_target(data, lookup.replicas_by_identity(made["identity"]), made.id, number)
    data.replicas_by_account.set(account, number)
    data.replicas.append(made.id)
    lookups.confirm_id(data, Reservation("", "nextReplica"), number)
    await index_versions(data, await records.read_outline(data, made.id))
    return await records.read_replica(data, made.id)


def _version(number: int, index: int, provider: Any, *, is_hub: bool) -> dict[str, Any]:
    hub = index // HUB_EVERY * HUB_EVERY
    required = {
        "hub": {
            "contract": hub_identity(hub),
            "displayInfo": {},
            "replicas": [{"id": provider.id, "name": provider.name, "account": provider.account}] if provider else [],
            "alternatives": [],
            "permissions": [{"requestType": "static", "status": "approved", "permission": "use", "params": {}}],
            "optional": False,
            "multiple": False,
            "chosen": False,
        }
    }
    return {
        "id": number,
        "request": VERSIONS * index + number,
        "status": "running" if number == VERSIONS else "stopped",
        "wasHealthy": True,
        "health": {"deadlineS": 600, "minReadyS": 0, "onFailure": "stay"},
        "image": f"{constants.RESIDE_REGISTRY}/bench/worker-{index}:v{number}",
        "digest": f"sha256:{index:032x}{number:032x}",
        "displayInfo": {"en": {"title": "A replica", "description": "One of many."}},
        "implementations": {"own": hub_identity(index)} if is_hub else {},
        "requirements": {} if is_hub else required,
    }


def hub_identity(index: int) -> str:
    """Return the identity of a hub's contract."""
    return f"{constants.RESIDE_REGISTRY}/bench/hub-{index}.v1"


def hub_contract(index: int) -> ContractManifest:
    """Return the contract of a hub."""
    members = {
        "type": "contract",
        "identity": hub_identity(index),
        "permissions": {"use": {}},
        "methods": {"greet": {}},
    }
    return ContractManifest.model_validate(members)


async def _finished_requests(alpha: Alpha, first: int, count: int) -> None:
    """Write finished load requests of replicas that were deleted. Nothing looks for them, so they get no look-ups."""
    data, finished, entries = alpha.data, await index(alpha.data), {}
    group = data.node.create_group("load requests")
    await group.extend(data.requests_group, "reader")
    for position in range(first, first + count):
        number = position + 1
        preview: dict[str, Any] = {
            "stack": "worker",
            "revision": "0" * 64,
            "changes": [],
            "violations": [],
            "error": None,
        }
        made = group.create_map(
            {
                "id": number,
                "status": "rejected",
                "image": f"{constants.RESIDE_REGISTRY}/bench/worker:v{number}",
                "owner": alpha.account,
                "client": alpha.account,
                "wish": f"co_zFinished{number}",
                "health": {"deadlineS": 600, "minReadyS": 0, "onFailure": "stay"},
                "preview": preview,
                "rejectionReason": "expired",
            }
        )
        of = f"replica {1_000_000 + position // _OF_REPLICA}"
        entries[str(number)] = {"request": made.id, "of": of, "at": made.last_edited_at}
    finished.update(entries)
    data.root.set("nextLoadRequest", first + count + 1)
    await data.node.drain()


class _Bulk(Alpha):
    """An Alpha that writes without a lock."""

    def transaction(self) -> Any:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Transaction]:
        opened = _Unlocked(self.node)
        yield opened
        await opened.commit()


class _Unlocked(Transaction):
    def __init__(self, node: Node) -> None:
        super().__init__(node, None)  # type: ignore[arg-type]

    async def run_exclusively(self, procedure: Any) -> Any:
        await self.commit()
        return await procedure()

    async def commit(self) -> None:
        staged, self._staged = self._staged, []
        self._write(staged)


def _accounts(file: Path) -> dict[str, Credentials]:
    if not file.exists():
        made = {name: Credentials.generate().agent_secret for name in ("alpha", "sentinel", "admin")}
        file.write_text(json.dumps(made))
    return {name: Credentials.from_secret(secret) for name, secret in json.loads(file.read_text()).items()}
