"""Declared stacks become live objects through the engine and are reported; what no stack declares is deleted."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from integration.sentinel.setup import Setup
from integration.sentinel.stack_objects import claim, live, metric, secret
from support.eventually import eventually
from support.sentinel import config_map, kubectl, service, workload

from reside.cli.pruning import HeldObjects, confirm_deletion, open_maps
from reside.local import ClusterInfo
from reside.model.errors import NotAllowed

pytestmark = pytest.mark.anyio


async def test_a_declared_stack_becomes_live_and_is_reported(cluster: ClusterInfo, setup: Setup) -> None:
    """Create, change and delete objects of a stack; then delete the stack itself. The metrics count what happened."""
    before = metric("apply_seconds_count")
    async with setup.running():
        alpha = await setup.alpha()
        stack = await alpha.declare("demo", workload("Deployment", "web"), service("web"), config_map("a", x="1"))
        report = await alpha.shown(stack)
        assert report["error"] is None
        assert {key for key in report if "/" in key} == {"Deployment/web", "Service/web", "ConfigMap/a"}
        deployment = report["Deployment/web"]
        assert deployment["status"] == "updated"
        assert "managedFields" not in deployment["live"]["metadata"]

        changed = await alpha.declare("demo", workload("Deployment", "web", replicas=0), config_map("a", x="2"))
        await alpha.applied(changed)
        await alpha.report("demo", lambda now: "Service/web" not in now and replicas(now["Deployment/web"]) == 0)
        assert (await live(cluster, setup, "ConfigMap/a") or {})["data"] == {"x": "2"}
        await eventually("the count of the deletion", lambda: metric("objects_total", kind="Service", action="delete"))
        assert metric("apply_seconds_count") >= before + 2  # one more if the Service has not ended at once
        assert metric("unaccepted_stacks") == metric("prune_held_objects") == 0
        for phase in ("check", "wait", "engine", "store"):
            assert metric("operation_phase_seconds_count", operation="apply", phase=phase) >= 2
        assert metric("objects_total", kind="ConfigMap", action="update") >= 1
        assert metric("lane_wait_seconds_count", queue="stack") >= 2
        assert metric("engine_memory_bytes") > 0
        assert metric("watch_last_event_seconds", kind="Deployment") > 0

        alpha.desired.delete("demo")

        async def left() -> list[str]:
            found = [key for key in ("Deployment/web", "ConfigMap/a") if await live(cluster, setup, key)]
            return found + (["report"] if "demo" in alpha.reports else [])

        await eventually("the end of the stack", left, lambda found: not found)


def replicas(reported: dict[str, Any]) -> int | None:
    """Return the size of a reported workload; None if it is not shown live."""
    found: int | None = reported.get("live", {}).get("spec", {}).get("replicas")
    return found


async def test_a_stack_that_breaks_a_rule_is_refused_as_a_whole(cluster: ClusterInfo, setup: Setup) -> None:
    async with setup.running():
        alpha = await setup.alpha()
        bad = workload("Deployment", "web")
        bad["spec"]["template"]["spec"]["containers"][0]["securityContext"] = {"privileged": True}
        await alpha.declare("demo", bad, config_map("a", x="1"))
        report = await alpha.report("demo", lambda now: now.get("error"))
        assert "Deployment/web breaks" in report["error"]
        assert await live(cluster, setup, "ConfigMap/a") is None
        await alpha.declare("withdrawn", bad)
        await alpha.report("withdrawn", lambda now: now.get("error"))
        alpha.desired.delete("withdrawn")
        await eventually("the end of the report", lambda: "withdrawn" not in alpha.reports)
        assert (await alpha.applied(await alpha.declare("demo", config_map("a", x="1"))))["error"] is None


async def test_previews_report_changes_violations_and_refusals(cluster: ClusterInfo, setup: Setup) -> None:
    """A preview changes nothing; an unknown secret value does not prevent it."""
    await asyncio.to_thread(kubectl, cluster, "-n", setup.namespace, "create", "configmap", "foreign")
    async with setup.running():
        alpha = await setup.alpha()
        await alpha.applied(await alpha.declare("demo", config_map("a", x="1"), config_map("b", x="1")))
        result = await alpha.ask("one", "demo", config_map("a", x="2"), secret("web", "co_znothing"))
        assert result["error"] is None
        assert {change["object"]: change["action"] for change in result["changes"]} == {
            "ConfigMap/a": "update",
            "ConfigMap/b": "delete",
            "Secret/web": "create",
        }
        assert (await live(cluster, setup, "ConfigMap/a") or {})["data"] == {"x": "1"}
        host = workload("Deployment", "web")
        host["spec"]["template"]["spec"]["hostNetwork"] = True
        result = await alpha.ask("two", "demo", host)
        assert "Deployment/web breaks" in result["violations"][0]
        result = await alpha.ask("three", "demo", config_map("foreign", x="1"))
        assert "ConfigMap/foreign" in result["error"]


async def test_unknown_objects_are_deleted_except_in_careful_mode(cluster: ClusterInfo, setup: Setup) -> None:
    """Careful mode is on at first. While a stack is refused, nothing is deleted; foreign objects are ignored."""
    for manifest in (config_map("stray", x="1"), config_map("wanted", "refused", x="1")):
        await asyncio.to_thread(kubectl, cluster, "-n", setup.namespace, "apply", "-f", "-", stdin=json.dumps(manifest))
    await asyncio.to_thread(kubectl, cluster, "-n", setup.namespace, "create", "configmap", "foreign")
    async with setup.running():
        alpha = await setup.alpha()
        await alpha.applied(await alpha.declare("demo", config_map("a", x="1")))
        refused = workload("Deployment", "web")
        refused["spec"]["template"]["spec"]["hostNetwork"] = True
        await alpha.declare("refused", config_map("wanted", "refused", x="1"), refused)
        await alpha.report("refused", lambda now: now.get("error"))
        await setup.careful(False)
        held = await setup.held(lambda found: found.get("objects"))
        assert [each["object"] for each in held["objects"]] == ["ConfigMap/stray"]
        assert "refused" in held["reasons"][0]
        assert await live(cluster, setup, "ConfigMap/stray")
        await alpha.applied(await alpha.declare("refused", config_map("wanted", "refused", x="1")))
        await eventually(
            "the end of the stray object",
            lambda: live(cluster, setup, "ConfigMap/stray"),
            lambda found: found is None,
        )
        for name in ("a", "wanted", "foreign"):
            assert await live(cluster, setup, f"ConfigMap/{name}")


async def test_a_sentinel_that_lost_its_volume_deletes_what_an_operator_confirms(
    cluster: ClusterInfo, setup: Setup, tmp_path: Path
) -> None:
    """The permission of the stack's owner is not current: nobody owns its objects. Each of them stays."""
    async with setup.running():
        alpha = await setup.alpha()
        await alpha.applied(await alpha.declare("mine", claim("jazz", "mine"), config_map("a", "mine", x="1")))
        await setup.careful(False)
        async with setup.other("ConfigMap") as other:
            await other.applied(await other.declare("theirs", config_map("b", "theirs", x="1")))
            await setup.grant(other.node.account_id, "ConfigMap", granted=False)
    (tmp_path / "new").mkdir()
    lost = replace(setup, settings=setup.settings.model_copy(update={"state_dir": tmp_path / "new"}))
    async with lost.running():
        held = await setup.held(lambda found: [each["object"] for each in found.get("objects", [])] == ["ConfigMap/b"])
        assert "theirs" in held["reasons"][0]
        assert "volume was empty" in held["reasons"][1]
        async with setup.operator() as node:
            maps = await open_maps(node, setup.identity.credentials.account_id)
            await confirm_deletion(node, *maps, HeldObjects.parse(held))
        await eventually("the deletion", lambda: live(cluster, setup, "ConfigMap/b"), lambda found: found is None)
        for key in ("PersistentVolumeClaim/jazz", "ConfigMap/a"):
            assert await live(cluster, setup, key)
        async with setup.other("ConfigMap") as other:
            with pytest.raises(NotAllowed, match="prune:confirm"):
                await open_maps(other.node, setup.identity.credentials.account_id)


async def test_the_next_apply_keeps_yielded_fields_and_a_rollout_restart_and_tells_what_was_added(
    cluster: ClusterInfo, setup: Setup
) -> None:
    """Until another manager owns the yielded field, the declared value counts. The next apply gives it up, once."""

    async def patch(manager: str, change: dict[str, Any]) -> None:
        arguments = ("patch", "deployment", "web", "--patch", json.dumps(change), "--field-manager", manager)
        await asyncio.to_thread(kubectl, cluster, "-n", setup.namespace, *arguments)

    def manifest(replicas: int, **spec: Any) -> dict[str, Any]:
        found = workload("Deployment", "web", replicas=replicas, **spec)
        found["metadata"]["annotations"] = {"reside.io/yield": "spec.replicas"}
        return found

    async with setup.running():
        alpha = await setup.alpha()
        await alpha.applied(await alpha.declare("demo", manifest(2)))
        await alpha.applied(await alpha.declare("demo", manifest(3)))
        assert (await live(cluster, setup, "Deployment/web") or {})["spec"]["replicas"] == 3
        await asyncio.to_thread(kubectl, cluster, "-n", setup.namespace, "rollout", "restart", "deployment", "web")
        await patch("autoscaler", {"spec": {"replicas": 7}})
        await patch("injector", {"metadata": {"annotations": {"example.com/added": "1"}}})
        report = await alpha.report("demo", lambda now: now["Deployment/web"].get("drift"))
        assert report["Deployment/web"]["drift"] == [
            'metadata.annotations["example.com/added"] by injector was added, and stays'
        ]
        for seconds in (5, 6):
            preview = await alpha.ask(f"load-request.{seconds}.a", "demo", manifest(4, minReadySeconds=seconds))
            (change,) = preview["changes"]
            given_up = ["spec.replicas"] if seconds == 5 else []
            assert change["paths"] == ["spec.minReadySeconds", *given_up]
            await alpha.applied(await alpha.declare("demo", manifest(4, minReadySeconds=seconds)))
            found = await live(cluster, setup, "Deployment/web") or {}
            assert (found["spec"]["replicas"], found["spec"]["minReadySeconds"]) == (7, seconds)
            assert "kubectl.kubernetes.io/restartedAt" in found["spec"]["template"]["metadata"]["annotations"]
