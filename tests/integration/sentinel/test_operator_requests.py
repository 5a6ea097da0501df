"""Operators have the Sentinel give stacks to another account."""

from __future__ import annotations

import asyncio
import json
import shutil
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from integration.sentinel.stack_objects import live, metric, secret, secret_value
from support.eventually import eventually
from support.sentinel import config_map, kubectl

from reside.cli.operator_requests import Operator, open_operator
from reside.model.errors import NotAllowed, ResideError
from reside.model.sentinel_data import (
    DRY_RUN,
    EXPORT_STATE,
    FROM,
    IMPORT_STATE,
    MANAGE_STATE,
    PRUNE_STATES,
    REASSIGN,
    REASSIGN_STACKS,
    STACK,
    STACKS,
    TO,
)

if TYPE_CHECKING:
    from pathlib import Path

    from integration.sentinel.setup import Setup

    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio
KEYS = ("Secret/web", "ConfigMap/a", "ConfigMap/b")


async def test_a_new_account_takes_over_the_stacks_of_a_lost_one(
    cluster: ClusterInfo, setup: Setup, tmp_path: Path
) -> None:
    """No object is deleted or created again, whatever the lost account writes then. Secret values move with a stack."""
    sentinel = setup.identity.credentials.account_id
    async with AsyncExitStack() as parts:
        async with setup.running():
            lost = await setup.alpha()
            value = lost.group.create_map({"value": "very-secret"})
            demo = (secret("web", value.id), config_map("a", x="1"))
            del demo[0]["stringData"]  # only Alpha may declare a value in plain text
            await lost.applied(await lost.declare("demo", *demo))
            await lost.applied(await lost.declare("more", config_map("b", "more", x="1")))
            value.delete("value")
            before = await uids(cluster, setup)
            new = await parts.enter_async_context(setup.other("Secret", "ConfigMap"))
            declared = await new.declare("demo", *demo)
            with pytest.raises(NotAllowed, match="stack:reassign"):
                await open_operator(new.node, sentinel, REASSIGN)

            node = await parts.enter_async_context(setup.operator(REASSIGN))
            operator = await open_operator(node, sentinel, REASSIGN)
            every = {FROM: lost.node.account_id, TO: new.node.account_id}
            assert await reassign(operator, {**every, DRY_RUN: True}) == {
                "demo": "would belong to it",
                "more": "would belong to it, and stays as it is until it declares the stack",
            }
            assert (await reassign(operator, every))["demo"] == "belongs to it"
            assert await reassign(operator, {**every, STACKS: ["demo", "none"]}) == {
                "demo": "belongs to it already",
                "none": "refused: there is no such stack",
            }
            await new.applied(declared)

            lost.desired.delete("demo")
            await lost.declare("more", config_map("b", "more", x="of the lost account"))
            refused = await new.report("more", lambda now: now.get("error"))
            assert refused["error"].startswith(f"stack more belongs to {new.node.account_id}, which has not declared")
            await new.applied(await new.declare("more", config_map("b", "more", x="2")))
            assert await uids(cluster, setup) == before

            await asyncio.to_thread(kubectl, cluster, "-n", setup.namespace, "delete", "secret", "web")
            await eventually(
                "the restored Secret", lambda: uids(cluster, setup), lambda now: None not in now and now != before
            )
            assert await secret_value(cluster, setup, "web") == "very-secret"
            await eventually("the end of the answers", lambda: len(operator.answers), lambda left: left == 0)

        before = await uids(cluster, setup)
        (tmp_path / "new").mkdir()
        empty = replace(setup, settings=setup.settings.model_copy(update={"state_dir": tmp_path / "new"}))
        async with empty.running():
            await new.applied(await new.declare("more", config_map("b", "more", x="3")))
            assert await uids(cluster, setup) == before


async def test_an_operator_exports_a_state_brings_it_back_and_removes_those_of_no_stack(
    cluster: ClusterInfo, setup: Setup
) -> None:
    """The state is one before a change: the next apply refreshes it. One with objects of others is refused."""
    async with setup.running(), setup.operator(MANAGE_STATE) as node:
        alpha = await setup.alpha()
        value = alpha.group.create_map({"value": "very-secret"})
        await alpha.applied(await alpha.declare("more", config_map("b", "more", x="1")))
        await alpha.applied(await alpha.declare("demo", secret("web", value.id), config_map("a", x="1")))
        operator = await open_operator(node, setup.identity.credentials.account_id, MANAGE_STATE)
        exported = await operator.ask(EXPORT_STATE, {STACK: "demo"})
        assert exported.members == {STACK: "demo", "objects": 2}
        assert b"very-secret" not in exported.file
        assert b"ConfigMap::a" in exported.file

        changed = (secret("web", value.id), config_map("a", x="2"), config_map("c", x="1"))
        await alpha.applied(await alpha.declare("demo", *changed))
        before = await uids(cluster, setup)
        applied = metric("apply_seconds_count")
        done = await operator.ask(IMPORT_STATE, {STACK: "demo"}, file=exported.file)
        assert done.members == exported.members
        await eventually("another apply", lambda: metric("apply_seconds_count"), lambda now: now > applied)
        await alpha.applied(await alpha.declare("demo", *changed, config_map("d", x="1")))
        assert await uids(cluster, setup) == before
        assert ((await live(cluster, setup, "ConfigMap/a")) or {})["data"] == {"x": "2"}
        state = json.loads((await operator.ask(EXPORT_STATE, {STACK: "demo"})).file)
        assert len(state["deployment"]["resources"]) == len(changed) + 3  # an object, the provider and the stack

        for stack, file in {"more": exported.file, "demo": exported.file.replace(b'"a"', b'"b"')}.items():
            with pytest.raises(ResideError, match="state"):
                await operator.ask(IMPORT_STATE, {STACK: stack}, file=file)
        foreign = exported.file.replace(b"ConfigMap::a", b"ConfigMap::b").replace(b'"a"', b'"b"')
        with pytest.raises(ResideError, match="belongs to the stack more"):
            await operator.ask(IMPORT_STATE, {STACK: "demo"}, file=foreign.replace(b'/a"', b'/b"'))

        folder = setup.settings.engine_dir / "workspaces"
        shutil.copytree(folder / "more", folder / "left", ignore=shutil.ignore_patterns(".events"))
        assert (await operator.ask(PRUNE_STATES, {DRY_RUN: True})).members[STACKS].keys() == {"left"}
        await operator.ask(PRUNE_STATES, {})
        assert {path.name for path in folder.iterdir()} == {"demo", "more"}
        await eventually("the end of the answers", lambda: len(operator.answers), lambda left: left == 0)


async def reassign(operator: Operator, members: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = (await operator.ask(REASSIGN_STACKS, members)).members[STACKS]
    return found


async def uids(cluster: ClusterInfo, setup: Setup) -> list[str | None]:
    found = [await live(cluster, setup, key) for key in KEYS]
    return [None if each is None else each["metadata"]["uid"] for each in found]
