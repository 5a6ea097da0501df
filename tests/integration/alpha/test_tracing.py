"""One load is one trace: the call of a client, Alpha's server, the steps of its loop, and what the Sentinel gets."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from integration.alpha.test_loading import push_greeter
from support.traces import Received, receiver, recording

from reside.alpha import records
from reside.common import tracing
from reside.common.traceparent import TRACEPARENT, parse
from reside.model.lookup import TARGET
from reside.model.sentinel_data import stack_map
from reside.model.stacks import DesiredStack

if TYPE_CHECKING:
    from support.alpha_cluster import AlphaCluster, Client, Servers

    from reside.alpha.data import AlphaData
    from reside.jazz import CoMap

pytestmark = pytest.mark.anyio

STEPS = {
    "the command": None,
    "call create-load-request": "the command",
    "handle create-load-request": "call create-load-request",
    "validate a load request": "handle create-load-request",
    "read an image": "validate a load request",
    "create a version": "handle create-load-request",
    "declare a stack": "handle create-load-request",
}
"""Name of a span → that of its parent."""


async def test_a_load_is_one_trace_from_the_client_to_the_declared_stack(
    cluster: AlphaCluster, servers: Servers, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await push_greeter(servers)
    with receiver() as collector, recording(collector, monkeypatch):
        with tracing.span("the command"):
            number = await admin.create("examples/greeter:v1")
        await admin.approve_latest(number)  # somebody else, with a trace of its own
        await cluster.has_status("greeter", "running")
        seen = await asyncio.to_thread(collector.wait, lambda seen: {span.name for span in seen} >= STEPS.keys())
    trace = collector.trace_of("the command")
    by_id = {span.id: span for span in seen}
    of_the_load = [span for span in seen if span.trace == trace and span.name in STEPS]
    assert {span.name for span in of_the_load} == STEPS.keys()
    for span in of_the_load:
        assert name_of(by_id.get(span.parent)) == STEPS[span.name], span
    assert {span.attributes["reside.load_request"] for span in seen if span.name == "create a version"} == {number}
    assert not any(span.trace == trace for span in seen if "approve" in span.name)

    data = cluster.alpha.data
    stored = (await records.find_request(data, number)).map[TRACEPARENT]
    assert parse(stored) == stored
    found = await stack_of_greeter(data)
    assert str(found[TRACEPARENT]).split("-")[1] == trace
    declared = DesiredStack.parse(found.as_dict())
    assert declared.revision == found["revision"] == DesiredStack("greeter", declared.owner, declared.objects).revision


async def test_later_changes_and_loads_do_not_belong_to_the_trace_of_a_load(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    await push_greeter(servers)
    with tracing.span("the command", parent=parent):
        number = await admin.create("examples/greeter:v1")
    await admin.approve_latest(number)
    await cluster.has_status("greeter", "running")
    data = cluster.alpha.data
    found = await stack_of_greeter(data)
    assert found[TRACEPARENT] == parent, "passed on, although nothing is recorded"
    before = found["revision"]
    await admin.call("scale-replica", {"replica": (await cluster.replica("greeter")).id, "pods": 2})
    async with found.watch() as changes:
        async for _ in changes:
            if found["revision"] != before:
                break
    assert TRACEPARENT not in found

    await push_greeter(servers, version=2)
    untraced = (await admin.load("examples/greeter:v2")).id
    assert TRACEPARENT not in (await records.find_request(data, untraced)).map


async def stack_of_greeter(data: AlphaData) -> CoMap:
    """Return the map of the greeter's desired stack, to which the unique map points."""
    pointer = await data.node.find_unique_map(data.stacks_group.id, stack_map("greeter"))
    assert pointer is not None
    return await data.node.load_map(str(pointer[TARGET]))


def name_of(span: Received | None) -> str | None:
    return None if span is None else span.name
