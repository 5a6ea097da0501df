"""Strangers upload values under the names that Alpha will use: its own values count, and nothing is skipped.

Anyone can compute the id of a unique value. The sync server runs as the official one does, so it accepts them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from interop.strangers.stranger import set_key, stranger, trusting
from support.alpha_cluster import HOST, AlphaCluster, Servers, run_servers

from reside.alpha import bootstrap
from reside.jazz.wire.header import unique_header
from reside.model import lookup
from reside.model.sentinel_data import stack_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reside.alpha.data import AlphaData

pytestmark = pytest.mark.anyio

FORGED = [set_key(key, "co_zForged") for key in ("target", "targets", "claimant", "value", "image", "id")]
FIRST = {
    "only the header": [],
    "content": [trusting(FORGED, made_at=1)],
    "first content": [trusting(FORGED, made_at=1, meta='{"fww":"init"}')],
}
NUMBERS = range(12)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with run_servers(tmp_path_factory.mktemp("squatted"), mode="open") as running:
        yield running


def names(data: AlphaData, image: str, replica: str) -> Iterator[tuple[str, str]]:
    """Yield the group id and the name of every unique value of a load that a stranger can predict."""
    numbered = (lookup.replica_by_id, lookup.load_request_by_id, lookup.rcb_by_id, lookup.contract_by_id)
    for number in NUMBERS:
        yield from ((data.public.id, name(number)) for name in (*numbered, lookup.replicas_by_contract))
        yield data.public.id, lookup.load_turn_of_replica(number)
        yield data.replicas_group.id, f"version.of-request.{number}"
        yield data.secrets_group.id, f"agent-secret.of-request.{number}"
    for name in (lookup.replica_by_name, lookup.load_request_by_name):
        yield data.public.id, name(replica)
    for name in (lookup.replicas_by_identity, lookup.load_turn_of_identity, lookup.contract_by_identity):
        yield data.public.id, name(f"{HOST}/examples/{replica}")
        yield data.public.id, name(f"{HOST}/contracts/{replica}.v1")
    yield data.stacks_group.id, stack_map(replica)
    yield data.requests_group.id, f"bootstrap.1.{image}"


async def squat(cluster: AlphaCluster, image: str, replica: str, transactions: list[dict[str, Any]]) -> None:
    """Upload a value under each of these names."""
    async with stranger(cluster.servers.jazz.url) as who:
        for group, name in names(cluster.alpha.data, image, replica):
            header = unique_header("comap", group, name)
            message = who.content(header.co_id, transactions)
            await who.send(message | {"header": dict(header.raw)} | ({} if transactions else {"new": {}}))
        assert len(await who.sessions(header.co_id)) == bool(transactions)


@pytest.mark.parametrize("squatted", FIRST)
async def test_loads_are_as_without_squatters(cluster: AlphaCluster, servers: Servers, squatted: str) -> None:
    """Of an administrator, and of an upgrade by the seed, whose request is a unique value, too."""
    identity = f"{HOST}/contracts/worker.v1"
    await servers.push("contracts/worker.v1", type="contract", permissions={"work": {}}, methods={"work": {}})
    about = {"name": "worker", "class": "long-running", "exclusive": True, "scalable": True}
    implementations = {"work": {"identity": identity}}
    digests = [
        await servers.push(
            f"examples/worker:v{number}",
            type="replica",
            info=about,
            displayInfo={"en": {"title": f"version {number}"}},
            implementations=implementations,
        )
        for number in (1, 2)
    ]
    image = f"{HOST}/examples/worker@{digests[0]}"
    await squat(cluster, image, "worker", FIRST[squatted])
    await bootstrap.load(cluster.alpha, image)
    await cluster.has_status("worker", "running")
    admin = await cluster.admin()
    await admin.load("examples/worker:v2")
    await cluster.has_status("worker", "stopped", "running")
    replica = await cluster.replica("worker")
    assert (replica.id, [version.digest for version in replica.versions]) == (3, digests)
