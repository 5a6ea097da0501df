"""Options of commands whose effect only a cluster shows."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

import pytest
from integration.alpha.test_reasons import WORKER, push_images
from support.alpha_cluster import HOST, AlphaCluster, Client, Servers, alpha_cluster
from support.reside_command import Operator, operator_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.anyio


@pytest.fixture
async def cluster(servers: Servers) -> AsyncIterator[AlphaCluster]:
    await push_images(servers)
    async with alpha_cluster(servers) as made:
        yield made


@pytest.fixture
async def admin(cluster: AlphaCluster) -> Client:
    return await cluster.admin()


@pytest.fixture
def operator(cluster: AlphaCluster, admin: Client, tmp_path: Path) -> Operator:
    return operator_of(cluster, admin, tmp_path)


async def test_a_request_is_owned_by_the_account_that_is_named(cluster: AlphaCluster, operator: Operator) -> None:
    owner = (await cluster.client("owner")).credentials.account_id
    await operator.reside("request", "create", WORKER, "--name", "owned", "--owner-id", owner)
    listed = json.loads(await operator.reside("request", "list", "--output", "json"))
    shown = json.loads(await operator.reside("request", "show", str(listed[0]["id"]), "--output", "json"))
    assert shown["owner"] == owner


async def test_only_grants_that_wait_for_a_decision_are_listed(operator: Operator, admin: Client) -> None:
    await operator.reside("replica", "load", f"{HOST}/examples/greeter:v1", "--auto-approve")
    await operator.reside("permission", "grant", admin.credentials.account_id, "greeter", "greet")
    assert json.loads(await operator.reside("permission", "list", "--pending", "--output", "json")) == []
    assert json.loads(await operator.reside("permission", "list", "--output", "json")) != []


async def test_a_load_tells_programs_its_progress_as_events(operator: Operator) -> None:
    image = f"{HOST}/examples/greeter:v1"
    assert "add --auto-approve" in await operator.reside("replica", "load", image, "--output", "json", code=1)
    async with operator.running("replica", "load", image, "--auto-approve", "--output", "json") as load:
        await load.end()
    events = [json.loads(line) for line in load.output.splitlines()]
    assert {each["event"] for each in events} == {"message", "request", "result"}
    assert events[-1] | {"id": 0} == {"event": "result", "name": "greeter", "id": 0, "version": 1, "status": "running"}
    (request,) = (each["request"] for each in events if each["event"] == "request")
    assert request["image"] == image


async def test_a_description_shows_what_jazz_says_while_alpha_does_not_answer(operator: Operator) -> None:
    """Alpha has taken the connection and is silent, as while it waits for etcd."""
    for image in ("greeter", "caller"):
        await operator.reside("replica", "load", f"{HOST}/examples/{image}:v1", "--auto-approve")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        alpha = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with operator.running("replica", "describe", "caller", alpha=alpha) as command:
            said = await command.end()
    assert "caller (id " in said
    assert "missing grants are not shown: Alpha has not answered for 10 s: `reside doctor` shows which part" in said


async def test_what_a_load_asks_for_is_in_its_request(cluster: AlphaCluster, admin: Client, operator: Operator) -> None:
    owner = (await cluster.client("owner")).credentials.account_id
    health = ("--health-deadline", "99", "--min-ready", "1", "--on-failure", "roll-back")
    await operator.reside("request", "create", WORKER, "--name", "first", *health)
    assert await _health(operator) == {"deadlineS": 99, "minReadyS": 1, "onFailure": "roll-back"}
    load = ("replica", "load", WORKER, "--auto-approve")
    await operator.reside(*load, "--name", "second", "--owner-id", owner, "--min-ready", "2", "--on-failure", "stay")
    assert await _health(operator) == {"deadlineS": 600, "minReadyS": 2, "onFailure": "stay"}
    assert (await cluster.replica("second")).owner == owner
    number = str((await cluster.replica("second")).id)
    await operator.reside("request", "create", WORKER, "--replica-id", number, "--canary", "50")
    assert (await _last_request(operator))["canaryPercent"] == 50


async def _last_request(operator: Operator) -> dict[str, Any]:
    listed = json.loads(await operator.reside("request", "list", "--all", "--output", "json"))
    number = max(each["id"] for each in listed)
    found: dict[str, Any] = json.loads(await operator.reside("request", "show", str(number), "--output", "json"))
    return found


async def _health(operator: Operator) -> Any:
    return (await _last_request(operator))["health"]


async def test_wide_lists_show_what_others_cut(operator: Operator) -> None:
    image = f"{HOST}/examples/greeter:v1"
    await operator.reside("replica", "load", image, "--auto-approve")
    (row,) = json.loads(await operator.reside("replica", "list", "--output", "json"))
    assert row["image"] not in await operator.reside("replica", "list")
    assert row["image"] in await operator.reside("replica", "list", "--wide")
    assert image not in await operator.reside("request", "list", "--all")
    assert image in await operator.reside("request", "list", "--all", "--wide")


async def test_programs_get_rollbacks_graphs_and_changes(cluster: AlphaCluster, operator: Operator) -> None:
    """And a replica that another one requires is deleted only by force."""
    for image in ("greeter", "caller"):
        await operator.reside("replica", "load", f"{HOST}/examples/{image}:v1", "--auto-approve")
    number = str((await cluster.replica("greeter")).id)
    update = ("replica", "load", f"{HOST}/examples/greeter:v1", "--replica-id", number, "--auto-approve")
    await operator.reside(*update)
    async with operator.running("replica", "rollback", "greeter", "--auto-approve", "--output", "json") as rollback:
        await rollback.end()
    result = json.loads(rollback.output.splitlines()[-1])
    assert (result["event"], result["name"], result["version"], result["status"]) == ("result", "greeter", 3, "running")
    graph = json.loads(await operator.reside("replica", "graph", "--output", "json"))
    assert [(each["from"], each["to"]) for each in graph["requirements"]] == [("caller", "greeter")]
    assert "digraph" in await operator.reside("replica", "graph", "--output", "dot")

    await operator.reside("request", "create", f"{HOST}/examples/greeter:v1", "--replica-id", number)
    request = str((await _last_request(operator))["id"])
    for line in (
        ("replica", "diff", "greeter", "--output", "json"),
        ("request", "diff", request, "--output", "json"),
    ):
        assert json.loads(await operator.reside(*line))
    await operator.reside("request", "reject", request, "--reason", "shown")

    refused = await operator.reside("replica", "delete", "greeter", "--auto-approve", code=1)
    assert "is required by caller (greeting): delete these first, or use --force" in refused
    await operator.reside("replica", "delete", "greeter", "--force", "--auto-approve")
    assert "greeter" not in (await cluster.names()).values()
