"""The engine brings a real cluster to the desired state of a stack, and reports what it changed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from integration.engine.progress import Progress
from integration.engine.running import Bench, actions, new_bench, secret, stack
from support.sentinel import config_map, metadata, service, workload

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL
from reside.sentinel.engine import ApplyRejected, StackLocked, StackSpec

if TYPE_CHECKING:
    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio


RBAC = "rbac.authorization.k8s.io"
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


def uid(bench: Bench, key: str) -> str:
    live = bench.live(key)
    assert live is not None
    return str(live["metadata"]["uid"])


def role_binding(name: str, role: str, **annotations: str) -> dict[str, Any]:
    names = {f"reside.io/{key}": value for key, value in annotations.items()}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": metadata(name, **names),
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": name}],
    }


async def test_a_change_that_kubernetes_forbids_replaces_jobs_and_what_is_annotated(bench: Bench) -> None:
    await bench.engine.apply(stack(workload("Job", "once"), role_binding("a", "one", replace="true")))
    before = [uid(bench, key) for key in ("Job/once", "RoleBinding/a")]
    other = workload("Job", "once")
    other["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "2"}]
    wanted = stack(other, role_binding("a", "two", replace="true"))
    if bench.settings.engine == "resident":  # the stock preview asks for a create beside the old object
        previewed = await bench.engine.preview(wanted)
        assert actions(previewed) == {"Job/once": "replace", "RoleBinding/a": "replace"}
        assert [uid(bench, key) for key in ("Job/once", "RoleBinding/a")] == before
    changed = await bench.engine.apply(wanted)
    assert actions(changed) == {"Job/once": "replace", "RoleBinding/a": "replace"}
    paths = {change.object: change.paths for change in changed.changes}
    assert any("env" in path for path in paths["Job/once"])
    assert any("roleRef" in path for path in paths["RoleBinding/a"])
    after = [uid(bench, key) for key in ("Job/once", "RoleBinding/a")]
    assert not set(before) & set(after)


async def test_no_other_object_is_replaced_and_the_error_has_path_and_cure(bench: Bench) -> None:
    """A volume claim would lose its data; the other changes of the stack take effect once the cause is corrected."""

    def objects(storage_class: str, x: str) -> StackSpec:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
        spec["storageClassName"] = storage_class
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata("data"), "spec": spec}
        return stack(claim, config_map("a", x=x))

    await bench.engine.apply(objects("slow", "1"))
    before = uid(bench, "PersistentVolumeClaim/data")
    for operation in (bench.engine.preview, bench.engine.apply):
        with pytest.raises(ApplyRejected) as caught:
            await operation(objects("fast", "2"))
        assert caught.value.object == "PersistentVolumeClaim/data"
        assert "spec" in caught.value.message
        assert "reside.io/replace" in caught.value.message
        assert uid(bench, "PersistentVolumeClaim/data") == before
    assert actions(await bench.engine.apply(objects("slow", "3")))["PersistentVolumeClaim/data"] in ("same", "update")
    assert uid(bench, "PersistentVolumeClaim/data") == before
    assert (bench.live("ConfigMap/a") or {})["data"] == {"x": "3"}


async def test_an_object_with_the_annotation_keep_is_neither_deleted_nor_replaced(bench: Bench) -> None:
    kept = config_map("kept", x="1")
    kept["metadata"]["annotations"] = {"reside.io/keep": "true"}
    await bench.engine.apply(stack(kept, config_map("a"), role_binding("b", "one", keep="true", replace="true")))
    before = uid(bench, "RoleBinding/b")
    with pytest.raises(ApplyRejected, match="roleRef"):
        await bench.engine.apply(stack(kept, config_map("a"), role_binding("b", "two", keep="true", replace="true")))
    assert uid(bench, "RoleBinding/b") == before
    assert actions(await bench.engine.apply(stack(config_map("a"))))["ConfigMap/a"] == "same"
    assert bench.live("ConfigMap/kept")
    assert uid(bench, "RoleBinding/b") == before
    await bench.engine.apply(stack(config_map("a"), kept))
    await bench.engine.destroy("demo")
    assert bench.live("ConfigMap/kept")
    assert bench.live("ConfigMap/a") is None


async def test_a_released_object_stays_and_another_stack_adopts_it(bench: Bench) -> None:
    await bench.engine.apply(stack(config_map("a"), config_map("b"), WEB))
    before = uid(bench, "ConfigMap/b")
    remaining = StackSpec("demo", (config_map("a"), WEB), frozenset({"ConfigMap/b"}))
    assert actions(await bench.engine.apply(remaining)) == {"ConfigMap/a": "same", "Deployment/web": "same"}
    assert actions(await bench.engine.apply(stack(config_map("b"), name="other"))) == {"ConfigMap/b": "create"}
    assert uid(bench, "ConfigMap/b") == before
    await bench.engine.destroy("demo", frozenset({"ConfigMap/a"}))
    assert bench.live("ConfigMap/a")
    assert bench.live("Deployment/web") is None


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
    assert {path.name for path in kept} == {"meta.yaml", "demo.json", "demo.json.bak", "demo.json.synced"}
    assert not [path for path in (bench.settings.folder / "home").rglob("*.log") if path.is_file()]
