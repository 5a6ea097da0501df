"""Options of commands whose effect only a cluster shows."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

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
