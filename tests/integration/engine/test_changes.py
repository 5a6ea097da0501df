"""The engine brings a real cluster to the desired state of a stack, and reports what it changed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from integration.engine.progress import Progress
from integration.engine.running import Bench, actions, new_bench, secret, stack
from support.sentinel import config_map, service, workload

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL
from reside.sentinel.engine import StackLocked

if TYPE_CHECKING:
    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio


WEB = workload("Deployment", "web", replicas=0)


async def test_create_change_delete_and_no_change(bench: Bench) -> None:
    created = await bench.engine.apply(stack(config_map("a", x="1"), secret("s", key="value"), service("web"), WEB))
    assert actions(created) == {
        "ConfigMap/a": "create",
        "Secret/s": "create",
        "Service/web": "create",
        "Deployment/web": "create",
    }
    same = await bench.engine.apply(stack(config_map("a", x="1"), secret("s", key="value"), service("web"), WEB))
    assert set(actions(same).values()) == {"same"}
    assert same.changed == ()

    changed = await bench.engine.apply(stack(config_map("a", x="2"), secret("s", key="value"), WEB))
    assert actions(changed) == {
        "ConfigMap/a": "update",
        "Secret/s": "same",
        "Service/web": "delete",
        "Deployment/web": "same",
    }
    assert {c.object: c.paths for c in changed.changed} == {"ConfigMap/a": ("data.x",), "Service/web": ()}
    live = bench.live("ConfigMap/a")
    assert live is not None
    assert live["data"] == {"x": "2"}
    assert bench.live("Service/web") is None


async def test_objects_have_our_manager_and_label_and_readiness_is_not_awaited(bench: Bench) -> None:
    await bench.engine.apply(stack(workload("Deployment", "never-ready", replicas=1)))
    text = bench.kubectl("get", "deployment", "never-ready", "-o", "jsonpath={.metadata.managedFields[*].manager}")
    assert FIELD_MANAGER in text.split()
    assert "pulumi" not in text
    live = bench.live("Deployment/never-ready")
    assert live is not None
    assert live["metadata"]["labels"][MANAGED_BY_LABEL] == FIELD_MANAGER


async def test_config_maps_and_secrets_change_in_place_and_lose_keys(bench: Bench) -> None:
    await bench.engine.apply(stack(config_map("a", x="1", y="1"), secret("s", one="first", two="second")))
    before = [bench.live(key) for key in ("ConfigMap/a", "Secret/s")]
    await bench.engine.apply(stack(config_map("a", x="2"), secret("s", one="third")))
    after = [bench.live(key) for key in ("ConfigMap/a", "Secret/s")]
    assert [x and x["metadata"]["uid"] for x in after] == [x and x["metadata"]["uid"] for x in before]
    assert [x and set(x["data"]) for x in after] == [{"x"}, {"one"}]


async def test_a_change_that_kubernetes_forbids_replaces_the_object(bench: Bench) -> None:
    job = workload("Job", "once")
    await bench.engine.apply(stack(job))
    before = bench.live("Job/once")
    other = workload("Job", "once")
    other["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "2"}]
    changed = await bench.engine.apply(stack(other))
    assert actions(changed) == {"Job/once": "update"}
    assert any("env" in path for path in changed.changes[0].paths)
    after = bench.live("Job/once")
    assert before is not None
    assert after is not None
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


async def test_preview_shows_what_apply_does_and_changes_nothing(bench: Bench) -> None:
    await bench.engine.apply(stack(config_map("a", x="1"), config_map("gone")))
    wanted = stack(config_map("a", x="2"), config_map("new"))
    preview = await bench.engine.preview(wanted)
    live = bench.live("ConfigMap/a")
    assert live is not None
    assert live["data"] == {"x": "1"}
    assert bench.live("ConfigMap/new") is None
    applied = await bench.engine.apply(wanted)
    assert {(c.object, c.action, c.paths) for c in preview.changes} == {
        (c.object, c.action, c.paths) for c in applied.changes
    }
    assert actions(applied) == {"ConfigMap/a": "update", "ConfigMap/new": "create", "ConfigMap/gone": "delete"}


async def test_preview_of_a_new_stack_leaves_no_trace(bench: Bench) -> None:
    preview = await bench.engine.preview(stack(config_map("a"), name="candidate"))
    assert actions(preview) == {"ConfigMap/a": "create"}
    assert bench.export("candidate") == {}
    assert not [path for path in bench.settings.folder.rglob("*candidate*") if "plugins" not in path.parts]


async def test_destroy_deletes_all_objects_and_forgets_the_stack(bench: Bench) -> None:
    await bench.engine.apply(stack(config_map("a"), service("web"), WEB))
    gone = await bench.engine.destroy("demo")
    assert actions(gone) == {"ConfigMap/a": "delete", "Service/web": "delete", "Deployment/web": "delete"}
    for key in ("ConfigMap/a", "Service/web", "Deployment/web"):
        assert bench.live(key) is None
    assert bench.export("demo") == {}
    assert (await bench.engine.destroy("demo")).changes == ()


async def test_workloads_are_created_after_all_other_objects(bench: Bench) -> None:
    events: list[Progress] = []
    await bench.engine.apply(stack(config_map("a"), WEB), events.append)
    assert events == [
        Progress("ConfigMap/a", "create", "started"),
        Progress("ConfigMap/a", "create", "done"),
        Progress("Deployment/web", "create", "started"),
        Progress("Deployment/web", "create", "done"),
    ]


async def test_stacks_are_applied_in_parallel_but_one_stack_serially(bench: Bench) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(bench.engine.apply(stack(config_map(n), name=n))) for n in ("one", "two", "three")]
        await asyncio.sleep(0)  # let the tasks take their stacks
        with pytest.raises(StackLocked, match="must serialize"):
            await bench.engine.apply(stack(config_map("one"), name="one"))
    assert [actions(task.result()) for task in tasks] == [{f"ConfigMap/{n}": "create"} for n in ("one", "two", "three")]


async def test_a_new_engine_continues_from_a_moved_state_folder(bench: Bench, cluster: ClusterInfo) -> None:
    await bench.engine.apply(stack(config_map("a", x="1")))
    moved = bench.settings.folder.parent / "moved"
    moved.mkdir()
    bench.settings.folder.rename(moved / "engine")
    async with new_bench(cluster, moved, namespace=bench.namespace, engine=bench.settings.engine) as second:
        assert actions(await second.engine.apply(stack(config_map("a", x="1")))) == {"ConfigMap/a": "same"}


async def test_history_does_not_grow(bench: Bench) -> None:
    for x in "123":
        await bench.engine.apply(stack(config_map("a", x=x)))
    kept = [path for path in (bench.settings.workspace("demo") / ".pulumi").rglob("*") if path.is_file()]
    assert {path.name for path in kept} == {"meta.yaml", "demo.json", "demo.json.bak"}
    assert not [path for path in (bench.settings.folder / "home").rglob("*.log") if path.is_file()]
