"""Reasons for not running that need Alpha, the Sentinel and Kubernetes: each is provoked, and the command names it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from integration.sentinel.pair import Pair, new_pair
from support.alpha_cluster import HOST, Servers, run_servers
from support.eventually import eventually
from support.live_objects import live_object
from support.reasons import reasons_of
from support.reside_command import Operator
from support.sentinel import kubectl

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio
REASONS = reasons_of("sentinel")
INFO: dict[str, Any] = {"name": "worker", "exclusive": False, "scalable": True}
RULE: dict[str, Any] = {"id": "team-label", "level": "mandatory", "kinds": ["Job"], "path": "metadata.labels.team"}
POLICY = {"rules": [RULE | {"present": True, "reason": "Costs are charged to teams.", "cure": "set the label team"}]}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with run_servers(tmp_path_factory.mktemp("sentinel-reasons")) as running:
        yield running


@pytest.fixture(scope="module")
async def pair(cluster: ClusterInfo, servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pair]:
    await servers.push("examples/worker:v1", type="replica", info=INFO | {"class": "long-running"})
    await servers.push("examples/job:v1", type="replica", info=INFO | {"class": "oneshot", "scalable": False})
    async with new_pair(cluster, servers, tmp_path_factory.mktemp("pair"), policy=POLICY) as made:
        yield made


@pytest.fixture(scope="module")
async def operator(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    admin, folder = await pair.alpha.admin(), tmp_path_factory.mktemp("operator")
    alpha = pair.alpha
    made = Operator(folder, admin.credentials, alpha.servers.jazz.url, alpha.endpoint, alpha.alpha.account)
    made.configure()
    return made


async def test_a_stack_that_breaks_the_policy(operator: Operator) -> None:
    row = REASONS["refused policy"]
    load = ("replica", "load", f"{HOST}/examples/job:v1", "--name", "nobodys", "--auto-approve")
    row.check_load(await operator.reside(*load, code=1))
    row.check_describe(await operator.reside("replica", "describe", "nobodys"))


async def test_an_object_of_somebody_else(pair: Pair, operator: Operator) -> None:
    row = REASONS["conflict"]
    secret = ("create", "secret", "generic", "taken", "--from-literal=key=theirs")
    await asyncio.to_thread(kubectl, pair.info, "-n", pair.namespace, *secret)
    load = ("replica", "load", f"{HOST}/examples/worker:v1", "--name", "taken", "--auto-approve")
    row.check_load(await operator.reside(*load, code=1))
    row.check_describe(await operator.reside("replica", "describe", "taken"))


@asynccontextmanager
async def no_pods(pair: Pair) -> AsyncIterator[None]:
    """Let a quota allow no pods while the block is open."""
    at = (pair.info, "-n", pair.namespace)

    async def used() -> dict[str, Any] | None:
        found = await asyncio.to_thread(live_object, pair.info, pair.namespace, "ResourceQuota", "none")
        return ((found or {}).get("status") or {}).get("hard")

    await asyncio.to_thread(kubectl, *at, "create", "quota", "none", "--hard=pods=0")
    await eventually("the quota's status", used)
    try:
        yield
    finally:
        await asyncio.to_thread(kubectl, *at, "delete", "quota", "none")


async def test_a_quota_that_allows_no_pod(pair: Pair, operator: Operator) -> None:
    row = REASONS["quota"]
    load = ("replica", "load", f"{HOST}/examples/worker:v1", "--name", "crowded", "--auto-approve")
    async with no_pods(pair):
        row.check_load(await operator.reside(*load, code=1))
        row.check_describe(await operator.reside("replica", "describe", "crowded"))


def test_all_rows_are_provoked() -> None:
    assert set(REASONS) == {"refused policy", "conflict", "quota"}
