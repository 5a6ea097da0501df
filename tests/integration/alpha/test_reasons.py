"""Reasons for not running that need Alpha, Jazz and etcd: each is provoked, and the command names it with the cure."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
from integration.alpha.test_outages_of_loads import asked, request
from support.alpha_cluster import HOST, AlphaCluster, Client, Servers, alpha_cluster
from support.eventually import eventually
from support.reasons import reasons_of
from support.reside_command import Operator, operator_of

from reside.alpha.loading import validate
from reside.alpha.lock_access import root_user
from reside.locks.etcd import Etcd, decode, encode
from reside.model.constants import MANIFEST_LABEL
from reside.model.manifest import encode_label, parse_manifest
from reside.registry import Bytes, ImageReference, RegistryClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reside.locks import EtcdUser

pytestmark = pytest.mark.anyio
REASONS = reasons_of("alpha")
GREETING = f"{HOST}/contracts/greeting.v1"
INFO: dict[str, Any] = {"class": "long-running", "exclusive": False, "scalable": True}
WORKER = f"{HOST}/examples/worker:v1"


@pytest.fixture(scope="module")
async def cluster(servers: Servers) -> AsyncIterator[AlphaCluster]:
    await push_images(servers)
    async with alpha_cluster(servers) as made:
        yield made


@pytest.fixture(scope="module")
async def admin(cluster: AlphaCluster) -> Client:
    return await cluster.admin()


@pytest.fixture(scope="module")
def operator(cluster: AlphaCluster, admin: Client, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    return operator_of(cluster, admin, tmp_path_factory.mktemp("operator"))


async def push_images(servers: Servers) -> None:
    await servers.push("contracts/greeting.v1", type="contract", permissions={"greet": {}}, methods={"greet": {}})
    await servers.push("contracts/lonely.v1", type="contract")
    await servers.push("examples/worker:v1", type="replica", info=INFO | {"name": "worker"})
    await servers.push(
        "examples/greeter:v1",
        type="replica",
        info=INFO | {"name": "greeter"},
        implementations={"greeting": {"identity": GREETING}},
    )
    required: dict[str, Any] = {"greeting": {"identity": GREETING, "permissions": [{"name": "greet"}]}}
    await servers.push("examples/caller:v1", type="replica", info=INFO | {"name": "caller"}, requirements=required)
    lonely = {"it": {"identity": f"{HOST}/contracts/lonely.v1"}}
    await servers.push("examples/lonely:v1", type="replica", info=INFO | {"name": "lonely"}, requirements=lonely)
    reference = ImageReference.parse(f"{HOST}/examples/rooted:v1")
    manifest = parse_manifest({"type": "replica", "identity": reference.identity, "info": INFO | {"name": "rooted"}})
    inner = {"Labels": {MANIFEST_LABEL: encode_label(manifest)}, "User": "0"}
    image = json.dumps({"os": "linux", "architecture": "amd64", "config": inner}).encode()
    await RegistryClient(servers.registry.mirrors).push_image(reference, image, [Bytes(b"layer")])


@pytest.mark.parametrize(
    ("reason", "image"),
    [("no such image", "nothing"), ("runAsNonRoot", "rooted"), ("missing requirement", "lonely")],
)
async def test_an_image_that_can_not_be_loaded(operator: Operator, reason: str, image: str) -> None:
    """The load is refused, and the description of the name says so although no replica has it."""
    row = REASONS[reason]
    load = ("replica", "load", f"{HOST}/examples/{image}:v1", "--name", image, "--auto-approve")
    row.check_load(await operator.reside(*load, code=1))
    row.check_describe(await operator.reside("replica", "describe", image))


async def test_a_registry_that_is_away(
    cluster: AlphaCluster, operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The load says what it waits for, and ends after a while."""
    row, name = REASONS["registry away"], "faraway"
    nobody = {"registry.example.org": "http://127.0.0.1:9"}
    await cluster.change_settings(registry_mirrors={**cluster.alpha.cluster.registry_mirrors, **nobody})
    image = f"registry.example.org/{name}:v1"
    async with operator.running("replica", "load", image, "--name", name, "--auto-approve") as load:
        await load.until("can't be reached")
        row.check_describe(await operator.reside("replica", "describe", name))
        monkeypatch.setattr(validate, "REGISTRY_TIMEOUT_S", 0.0)
        row.check_load(await load.end(1))


async def test_a_load_that_waits_for_approval_and_expires(cluster: AlphaCluster, operator: Operator) -> None:
    waiting, expired = REASONS["waiting for approval"], REASONS["expired request"]
    async with operator.running("replica", "load", WORKER, "--name", "undecided") as load:
        number = await asked(load)
        waiting.check_load(" ".join(load.output.split()))
        waiting.check_describe(await operator.reside("replica", "describe", "undecided"))
        await cluster.stop_leading()
        await cluster.change_settings(request_expiry_hours=1e-9)
        cluster.lead()  # the next leader looks at the time that is left of each request
        try:
            await eventually("the expiry", lambda: request(cluster, number), lambda found: found.status == "rejected")
            await load.answer("y")
            expired.check_load(await load.end(1))
        finally:
            await cluster.change_settings(request_expiry_hours=24)
    expired.check_describe(await operator.reside("replica", "describe", "undecided"))


async def test_a_permission_that_nobody_has_granted(cluster: AlphaCluster, admin: Client, operator: Operator) -> None:
    """The replica that grants it does not run, so nobody carries the grant out."""
    row = REASONS["missing grant"]
    await admin.load("examples/greeter:v1")
    cluster.orders.hold.add("Deployment/caller-1")
    async with operator.running("replica", "load", f"{HOST}/examples/caller:v1", "--auto-approve") as load:
        await load.until("is not granted")
        row.check_describe(await operator.reside("replica", "describe", "caller"))
        cluster.orders.hold.clear()
        cluster.sentinel.process_again()
        row.check_load(await load.end())


async def test_a_lease_that_is_lost_while_alpha_works(cluster: AlphaCluster, operator: Operator) -> None:
    """It ends while Alpha waits for Jazz within a transaction. Alpha writes nothing, and the command asks again."""
    async with operator.running("replica", "load", WORKER, "--name", "unlucky") as load:
        await asked(load)
        os.kill(cluster.servers.jazz.pid, signal.SIGSTOP)
        try:
            await load.answer("y")
            await _revoke_transactions(cluster)
        finally:
            os.kill(cluster.servers.jazz.pid, signal.SIGCONT)
        said = await load.end()
    REASONS["lease lost"].check_load(said)
    assert said.endswith("version 1 is running"), said


async def _revoke_transactions(cluster: AlphaCluster) -> None:
    """Wait until Alpha holds the lock of a transaction, and end its lease."""

    async def root() -> EtcdUser:
        return root_user(cluster.credentials)

    client = Etcd([cluster.servers.etcd.url], root)
    everything = {"key": encode("\0"), "range_end": encode("\0"), "keys_only": True}

    async def leases() -> list[int]:
        found = (await client.gateway.post("/v3/kv/range", everything)).get("kvs", [])
        return [int(each["lease"]) for each in found if "/transaction/" in decode(each["key"]) and "lease" in each]

    try:
        for lease in await eventually("a transaction", leases):
            await client.gateway.post("/v3/lease/revoke", {"ID": lease})
    finally:
        await client.aclose()


async def test_jazz_that_is_away(cluster: AlphaCluster, operator: Operator) -> None:
    """A load that has begun waits; a command that begins meanwhile ends with the cure."""
    row = REASONS["Jazz away"]
    cluster.orders.previewing = False
    async with operator.running("replica", "load", WORKER, "--name", "offline", "--auto-approve") as load:
        await load.until("validating, the Sentinel previews the change")
        await asyncio.to_thread(cluster.servers.jazz.stop)
        try:
            await load.until("waiting: Jazz can't be reached")
            described = await operator.reside("replica", "describe", "offline", code=1)
        finally:
            await asyncio.to_thread(cluster.servers.jazz.start)
        await load.until("it goes on after")
        cluster.orders.previewing = True
        cluster.sentinel.process_again()
        said = await load.end()
    row.check_load(said)
    assert said.endswith("version 1 is running"), said
    cure = "`reside doctor` shows which part is away"
    assert all(text in described for text in (*row.describe, cure)), described


def test_all_rows_are_provoked() -> None:
    assert set(REASONS) == {
        "registry away",
        *("no such image", "runAsNonRoot", "missing requirement", "waiting for approval", "expired request"),
        *("missing grant", "lease lost", "Jazz away"),
    }
