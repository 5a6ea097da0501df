"""Declared stacks become live objects through the engine and are reported; forbidden ones are refused."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from integration.sentinel.setup import Setup
from integration.sentinel.webhooks import silent_webhook
from prometheus_client import REGISTRY
from support.eventually import eventually
from support.gateway import install_definitions
from support.live_objects import live_objects
from support.sentinel import config_map, get, kubectl, metadata, service, workload

from reside.cli.pruning import HeldObjects, confirm_deletion, open_maps
from reside.local import ClusterInfo
from reside.model.cluster import ClusterSettings
from reside.model.constants import SECRET_REFERENCES_ANNOTATION
from reside.model.errors import NotAllowed
from reside.model.ingress import domain_ingress
from reside.model.kinds import BY_KIND
from reside.seed import platform
from reside.sentinel.guard.api import KubernetesApi

pytestmark = pytest.mark.anyio


def metric(name: str, **labels: str) -> float:
    """Return a metric of the Sentinel in this process; 0 before its first value."""
    return REGISTRY.get_sample_value(f"reside_sentinel_{name}", labels) or 0.0


async def live(cluster: ClusterInfo, setup: Setup, key: str) -> dict[str, Any] | None:
    return await asyncio.to_thread(get, cluster, setup.namespace, key)


def secret(name: str, target: str, stack: str = "demo") -> dict[str, Any]:
    references = {SECRET_REFERENCES_ANNOTATION: json.dumps({"agentSecret": target})}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(name, stack, **references),
        "type": "Opaque",
        "stringData": {"accountId": "co_zaccount"},
    }


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


async def test_secret_references_are_filled_in_and_survive_the_values_deletion(
    cluster: ClusterInfo, setup: Setup
) -> None:
    """The report in Jazz contains no value, and a value that another account wrote is ignored."""
    async with setup.running():
        alpha = await setup.alpha()
        value = alpha.group.create_map({"value": "very-secret-value"})
        report = await alpha.shown(await alpha.declare("demo", secret("web", value.id)))
        assert "very-secret-value" not in json.dumps(report)
        assert set(report["Secret/web"]["live"]["data"].values()) == {"***"}
        value.delete("value")
        await alpha.node.flush()
        await alpha.applied(await alpha.declare("demo", secret("web", value.id), config_map("a", x="1")))
        assert await secret_value(cluster, setup, "web") == "very-secret-value"
        assert await secret_value(cluster, setup, "web", "accountId") == "co_zaccount"
        value.set("value", "")
        await alpha.node.flush()
        await alpha.applied(await alpha.declare("demo", secret("web", value.id), config_map("a", x="2")))
        assert await secret_value(cluster, setup, "web") == ""

        async with setup.other("Secret") as thief:
            loot = secret("loot", value.id, "thief")
            del loot["stringData"]
            await thief.declare("thief", loot)
            refused = await thief.report("thief", lambda now: now.get("error"))
            assert "no value" in refused["error"]
    files = [path for path in setup.settings.state_dir.rglob("*") if path.is_file()]
    assert not [path for path in files if b"very-secret-value" in path.read_bytes()]


async def failures(cluster: ClusterInfo, setup: Setup) -> list[dict[str, Any]]:
    """Return the Kubernetes events about failed applies."""
    found = await asyncio.to_thread(live_objects, cluster, setup.namespace, "Event")
    return [event for event in found if event["reason"] == "ApplyFailed"]


async def secret_value(cluster: ClusterInfo, setup: Setup, name: str, member: str = "agentSecret") -> str:
    """Return a value of a live Secret."""
    template = f"go-template={{{{.data.{member} | base64decode}}}}"
    return await asyncio.to_thread(kubectl, cluster, "-n", setup.namespace, "get", "secret", name, "-o", template)


async def test_removing_a_stack_keeps_the_secret_values_of_one_that_is_just_being_applied(
    cluster: ClusterInfo, setup: Setup
) -> None:
    """A webhook holds up the apply. Afterwards its value is in no map any more, and its Secret is deleted by hand."""
    async with setup.running():
        alpha = await setup.alpha()
        old, new = (alpha.group.create_map({"value": text}) for text in ("old-value", "new-value"))
        await alpha.applied(await alpha.declare("old", secret("old", old.id, "old")))
        async with silent_webhook(cluster, setup.namespace) as asked:
            stack = await alpha.declare("new", secret("new", new.id, "new"), config_map("slow", "new", x="1"))
            async with asyncio.timeout(60):
                await asked.wait()
            alpha.desired.delete("old")
            await eventually("the end of the other stack", lambda: "old" not in alpha.reports)
        await alpha.applied(stack)
        new.delete("value")
        await alpha.node.flush()
        before = await live(cluster, setup, "Secret/new")
        assert before is not None
        await asyncio.to_thread(kubectl, cluster, "-n", setup.namespace, "delete", "secret", "new")

        async def restored() -> bool:
            found = await live(cluster, setup, "Secret/new")
            return found is not None and found["metadata"]["uid"] != before["metadata"]["uid"]

        await eventually("another Secret", restored)
        assert await secret_value(cluster, setup, "new") == "new-value"


async def test_an_author_without_the_permission_is_refused(cluster: ClusterInfo, setup: Setup) -> None:
    """The message names what is missing; once it is granted, the stack is applied without a new declaration."""
    async with setup.running(), setup.other("ConfigMap") as other:
        stack = await other.declare("mine", config_map("a", "mine", x="1"), workload("Deployment", "web", "mine"))
        report = await other.report("mine", lambda now: now.get("error"))
        assert "deployment:manage:all" in report["error"]
        assert await live(cluster, setup, "ConfigMap/a") is None
        await setup.grant(other.node.account_id, "Deployment")
        assert (await other.applied(stack))["error"] is None


async def test_no_account_changes_or_deletes_the_stack_of_another(cluster: ClusterInfo, setup: Setup) -> None:
    """Writes to another account's entry do not count, and an object cannot be in two stacks.

    It belongs to a stack from the beginning of its first apply, which fails here, and by its label.
    """
    stray = config_map("stray", "gone", x="1")
    await asyncio.to_thread(kubectl, cluster, "-n", setup.namespace, "apply", "-f", "-", stdin=json.dumps(stray))
    async with setup.running():
        alpha = await setup.alpha()
        await alpha.declare("demo", config_map("a", x="1"), config_map("Capital", x="1"))
        await alpha.report("demo", lambda now: now.get("error"))
        async with setup.other("ConfigMap") as other:
            await other.declare("first", config_map("a", "first", x="3"))
            report = await other.report("first", lambda now: now.get("error"))
            assert "belongs to the stack demo" in report["error"]
            await other.declare("first", config_map("stray", "first", x="3"))
            report = await other.report("first", lambda now: "ConfigMap/stray" in (now.get("error") or ""))
            assert "belongs to the stack gone, by its label" in report["error"]
        await alpha.declare("demo")
        report = await alpha.report("demo", lambda now: "without objects" in (now.get("error") or ""))
        assert "delete its entry" in report["error"]
        await alpha.applied(await alpha.declare("demo", config_map("a", x="1")))
        async with setup.other("ConfigMap") as other:
            await other.declare("demo", config_map("a", x="2"))
            other.desired.delete("demo")
            await other.declare("theirs", config_map("a", "theirs", x="3"))
            report = await other.report("theirs", lambda now: now.get("error"))
            assert "belongs to the stack demo" in report["error"]
            await alpha.applied(await alpha.declare("demo", config_map("a", x="4"), config_map("b", x="1")))
            assert (await live(cluster, setup, "ConfigMap/a") or {})["data"] == {"x": "4"}


async def test_an_object_moves_to_another_stack_of_its_owner_without_being_deleted(
    cluster: ClusterInfo, setup: Setup
) -> None:
    """Also if its old stack is removed."""
    async with setup.running():
        alpha = await setup.alpha()
        await alpha.applied(await alpha.declare("old", *[config_map(name, "old", x="1") for name in "abc"]))
        before = [(await live(cluster, setup, f"ConfigMap/{name}") or {})["metadata"]["uid"] for name in "bc"]
        new = await alpha.declare("new", config_map("b", "new", x="2"))
        await alpha.report("new", lambda now: now.get("error"))
        await alpha.declare("old", config_map("a", "old", x="1"), config_map("c", "old", x="1"))
        await alpha.applied(new)
        new = await alpha.declare("new", config_map("b", "new", x="2"), config_map("c", "new", x="2"))
        await alpha.report("new", lambda now: now.get("error"))
        alpha.desired.delete("old")
        await alpha.applied(new)
        after = [(await live(cluster, setup, f"ConfigMap/{name}") or {})["metadata"]["uid"] for name in "bc"]
        assert after == before
        assert await live(cluster, setup, "ConfigMap/a") is None


async def test_an_existing_foreign_object_is_refused_until_it_is_handed_over(
    cluster: ClusterInfo, setup: Setup
) -> None:
    await asyncio.to_thread(
        kubectl, cluster, "-n", setup.namespace, "create", "configmap", "a", "--from-literal=mine=yes"
    )
    async with setup.running():
        alpha = await setup.alpha()
        stack = await alpha.declare("demo", config_map("a", x="1"))
        report = await alpha.report("demo", lambda now: now.get("error"))
        assert "ConfigMap/a" in report["error"]
        assert "kubectl-create" in report["error"]
        assert report["ConfigMap/a"]["status"] == "error"
        events = await eventually("the event", lambda: failures(cluster, setup), lambda found: found)
        assert events[0]["involvedObject"]["name"] == "a"
        assert "kubectl-create" in events[0]["message"]
        assert (await live(cluster, setup, "ConfigMap/a") or {})["data"] == {"mine": "yes"}
        await asyncio.to_thread(kubectl, cluster, "-n", setup.namespace, "delete", "configmap", "a")
        assert (await alpha.applied(stack))["error"] is None


async def test_a_new_stack_asks_only_why_a_create_is_refused(
    cluster: ClusterInfo, setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache tells which objects do not exist; the precondition of the create protects one that it can't know."""
    asked: list[str] = []
    get_live = KubernetesApi.get

    async def get_counted(api: KubernetesApi, key: str) -> Any:
        asked.append(key)
        return await get_live(api, key)

    monkeypatch.setattr(KubernetesApi, "get", get_counted)
    flags = ("-n", setup.namespace, "create", "configmap", "mine", "--from-literal=mine=yes")
    await asyncio.to_thread(kubectl, cluster, *flags)
    async with setup.running():
        alpha = await setup.alpha()
        await alpha.applied(await alpha.declare("first", config_map("first", "first", x="1")))
        asked.clear()
        objects = (service("web"), config_map("a", x="1"), config_map("b", x="1"))
        assert (await alpha.applied(await alpha.declare("demo", *objects)))["error"] is None
        assert asked == []
        await alpha.declare("second", config_map("mine", "second", mine="no"))
        report = await alpha.report("second", lambda now: now.get("error"))
        assert "ConfigMap/mine exists and is managed by kubectl-create" in report["error"]
        assert asked[0] == "ConfigMap/mine"
        assert (await live(cluster, setup, "ConfigMap/mine") or {})["data"] == {"mine": "yes"}


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


async def test_an_account_other_than_alpha_uses_objects_of_its_own_stack_only(
    cluster: ClusterInfo, setup: Setup
) -> None:
    """Alpha may declare values in plain text and names of the platform; nobody's pods use Secrets of others."""
    async with setup.running():
        alpha = await setup.alpha()
        plain = secret("alpha", "co_znone", "alpha")
        plain["metadata"]["annotations"] = {}
        await alpha.applied(await alpha.declare("alpha", plain))
        async with setup.other("Deployment", "Secret") as other:
            thief = workload("Deployment", "thief", "mine")
            source = {"secretKeyRef": {"name": "alpha", "key": "accountId"}}
            thief["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "LOOT", "valueFrom": source}]
            await other.declare("mine", thief)
            refused = await other.report("mine", lambda now: now.get("error"))
            assert "Deployment/thief breaks own-references: Secret/alpha is used" in refused["error"]
            result = await other.ask("preview", "mine", thief, plain)
            assert any("Secret/alpha breaks no-secret-values" in each for each in result["violations"])
            assert any("Secret/alpha breaks reserved-names" in each for each in result["violations"])
        assert await live(cluster, setup, "Deployment/thief") is None


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


ROUTED = ClusterSettings(namespace="test", domain="web.test", gateway="edge/public")


def claim(name: str, stack: str = "demo") -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata(name, stack), "spec": spec}


async def test_the_role_that_the_bootstrap_creates_is_sufficient(cluster: ClusterInfo, setup: Setup) -> None:
    """With the ServiceAccount of the platform alone, every kind is applied, restored, and deleted."""
    await asyncio.to_thread(install_definitions, cluster)
    for manifest in platform.sentinel_access(setup.namespace, routes=True):
        await asyncio.to_thread(kubectl, cluster, "apply", "--server-side", "-f", "-", stdin=json.dumps(manifest))
    chosen = setup.settings.model_copy(update={"kubeconfig": await _kubeconfig(cluster, setup), "kube_context": "pod"})
    async with replace(setup, settings=chosen).running():
        alpha = await setup.alpha()
        objects = [config_map("a", x="1"), service("web"), *_one_of_each_other_kind(), secret("s", "co_znone")]
        objects[-1]["metadata"]["annotations"] = {}
        objects += [workload(kind, f"w-{kind.lower()}") for kind in ("Deployment", "StatefulSet", "Job")]
        assert {manifest["kind"] for manifest in objects} == set(BY_KIND)
        report = await alpha.applied(await alpha.declare("demo", *objects))
        assert report["error"] is None
        edit = {"data": {"x": "2", "y": "added"}}
        await asyncio.to_thread(
            kubectl, cluster, "-n", setup.namespace, "patch", "configmap", "a", "--patch", json.dumps(edit)
        )
        await eventually(
            "the repair of the object",
            lambda: live(cluster, setup, "ConfigMap/a"),
            lambda found: found is not None and found["data"] == {"x": "1"},
        )
        await eventually("the event about it", lambda: asyncio.to_thread(repairs, cluster, setup.namespace))
        reverted = await asyncio.to_thread(live_objects, cluster, setup.namespace, "Event")
        kinds = {event["involvedObject"]["kind"] for event in reverted if event["reason"] == "Reverted"}
        assert kinds == {"ConfigMap"}, "what the API server adds to an object is no drift"
        alpha.desired.delete("demo")
        await eventually("the end of the stack", lambda: "demo" not in alpha.reports)


def repairs(cluster: ClusterInfo, namespace: str) -> list[str]:
    """Return the messages of the events about repairs."""
    found = live_objects(cluster, namespace, "Event")
    return [event["message"] for event in found if event["reason"] == "Reverted"]


async def _kubeconfig(cluster: ClusterInfo, setup: Setup) -> Path:
    """Return a kubeconfig with the token of the platform's ServiceAccount, as a pod has it."""
    given = json.loads(await asyncio.to_thread(kubectl, cluster, "config", "view", "--raw", "--minify", "-o", "json"))
    name = "kubernetes-sentinel"
    token = await asyncio.to_thread(kubectl, cluster, "-n", setup.namespace, "create", "token", name)
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "pod", "cluster": given["clusters"][0]["cluster"]}],
        "users": [{"name": "pod", "user": {"token": token.strip()}}],
        "contexts": [{"name": "pod", "context": {"cluster": "pod", "user": "pod", "namespace": setup.namespace}}],
        "current-context": "pod",
    }
    path = setup.settings.state_dir / "kubeconfig"
    path.write_text(json.dumps(document))
    return path


def _one_of_each_other_kind() -> list[dict[str, Any]]:
    group = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    subjects = [{"kind": "ServiceAccount", "name": "web"}]
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    path = {"path": "/replicas/demo/", "pathType": "Prefix", "backend": backend}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    specs: list[tuple[str, dict[str, Any]]] = [
        ("ServiceAccount", {}),
        ("Role", {"rules": rules}),
        ("RoleBinding", {"roleRef": {"apiGroup": group, "kind": "Role", "name": "web"}, "subjects": subjects}),
        ("Ingress", {"spec": {"rules": [{"host": "web.test", "http": {"paths": [path]}}]}}),
        ("HTTPRoute", {"spec": domain_ingress({}, ROUTED, path)["spec"]}),
        ("NetworkPolicy", {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}),
        ("PersistentVolumeClaim", {"spec": claim}),
    ]
    return [
        {"apiVersion": BY_KIND[kind].api_version, "kind": kind, "metadata": metadata("web"), **body}
        for kind, body in specs
    ]
