"""Objects that were deleted or changed manually are restored, without the engine, Jazz or etcd."""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from support.eventually import eventually
from support.sentinel import (
    config_map,
    get,
    kubectl,
    metadata,
    service,
    settings,
    workload,
)

from reside.local import ClusterInfo
from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL, SECRET_REFERENCES_ANNOTATION, STACK_LABEL
from reside.model.kinds import BY_KIND
from reside.model.stacks import DesiredStack
from reside.sentinel.guard.api import KubernetesApi, connect
from reside.sentinel.guard.guard import Guard, run_guard
from reside.sentinel.store.stacks import StackStore, StoredStack
from reside.sentinel.store.vault import Vault

pytestmark = pytest.mark.anyio
OWNER = "co_zowner"


def store(folder: Path, *objects: dict[str, Any], name: str = "demo") -> StoredStack:
    """Leave a stack on the volume, as a Sentinel that applied it would."""
    stored = StoredStack(name, OWNER).after_apply(DesiredStack(name, OWNER, objects))
    StackStore(folder / "stacks").save(stored)
    return stored


async def shell(function: Callable[..., Any], *arguments: Any) -> Any:
    return await asyncio.to_thread(function, *arguments)


def files_with(folder: Path, text: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text in path.read_bytes()]


def leading(guard: Guard) -> Guard:
    guard.authority.lead()
    return guard


async def cached(guard: Guard, what: str, matches: Callable[[Mapping[str, Any]], object]) -> None:
    """Wait until the cache of live objects is as expected."""
    await eventually(what, lambda: guard.cache.objects, matches, show=lambda objects: str(sorted(objects)))


async def test_a_restarted_sentinel_restores_the_platform_without_jazz_and_etcd(
    cluster: ClusterInfo, namespace: str, tmp_path: Path
) -> None:
    """Missing StatefulSets and Services are restored from the volume at the start, before any login."""
    store(tmp_path, workload("StatefulSet", "jazz"), service("jazz"), workload("StatefulSet", "etcd"), service("etcd"))
    async with run_guard(settings(cluster, namespace, tmp_path).guard) as guard:
        await cached(guard, "all objects", lambda objects: len(objects) == 4)
    for key in ("StatefulSet/jazz", "Service/jazz", "StatefulSet/etcd", "Service/etcd"):
        assert await shell(get, cluster, namespace, key)


async def test_a_deleted_object_is_restored(cluster: ClusterInfo, namespace: str, tmp_path: Path) -> None:
    store(tmp_path, workload("Deployment", "web"), config_map("settings", a="1"))
    async with run_guard(settings(cluster, namespace, tmp_path).guard) as guard:
        leading(guard)
        await cached(guard, "two objects", lambda objects: len(objects) == 2)
        uid = guard.cache.objects["Deployment/web"]["metadata"]["uid"]
        await shell(kubectl, cluster, "-n", namespace, "delete", "deployment", "web", "--wait=false")
        await cached(
            guard,
            "another Deployment",
            lambda objects: "Deployment/web" in objects and objects["Deployment/web"]["metadata"]["uid"] != uid,
        )


async def test_an_edited_object_is_reverted(cluster: ClusterInfo, namespace: str, tmp_path: Path) -> None:
    """Image, scale, an added variable and a removed label: all are as declared again, and the object keeps its uid."""
    store(tmp_path, workload("Deployment", "web"))
    async with run_guard(settings(cluster, namespace, tmp_path).guard) as guard:
        leading(guard)
        await cached(guard, "the Deployment", lambda objects: "Deployment/web" in objects)
        await guard.repairer.settled()
        before = guard.cache.objects["Deployment/web"]
        edits = {
            "spec": {
                "replicas": 5,
                "paused": True,
                "template": {
                    "spec": {
                        "nodeSelector": {"some": "node"},
                        "containers": [
                            {"name": "main", "image": "nginx:latest", "env": [{"name": "B", "value": "added"}]},
                            {"name": "more", "image": "busybox"},
                        ],
                    }
                },
            }
        }
        await shell(
            kubectl, cluster, "-n", namespace, "patch", "deployment", "web", "--patch", json.dumps(edits),
            "--field-manager", "kubectl-edit",
        )  # fmt: skip
        await cached(
            guard,
            "the repair of the Deployment",
            lambda objects: (
                objects["Deployment/web"]["metadata"]["generation"] > before["metadata"]["generation"]
                and objects["Deployment/web"]["spec"] == before["spec"]
            ),
        )
        assert guard.cache.objects["Deployment/web"]["metadata"]["uid"] == before["metadata"]["uid"]
        await shell(kubectl, cluster, "-n", namespace, "scale", "deployment", "web", "--replicas=3")
        await cached(guard, "the repair", lambda objects: objects["Deployment/web"]["spec"] == before["spec"])


async def test_an_object_whose_label_was_removed_gets_it_back(
    cluster: ClusterInfo, namespace: str, tmp_path: Path
) -> None:
    store(tmp_path, config_map("settings", a="1"))
    async with run_guard(settings(cluster, namespace, tmp_path).guard) as guard:
        leading(guard)
        await cached(guard, "the ConfigMap", lambda objects: "ConfigMap/settings" in objects)
        uid = guard.cache.objects["ConfigMap/settings"]["metadata"]["uid"]
        version = guard.cache.objects["ConfigMap/settings"]["metadata"]["resourceVersion"]
        await shell(kubectl, cluster, "-n", namespace, "label", "configmap", "settings", f"{MANAGED_BY_LABEL}-")
        await cached(
            guard,
            "another version of the ConfigMap",
            lambda objects: (
                "ConfigMap/settings" in objects
                and objects["ConfigMap/settings"]["metadata"]["resourceVersion"] != version
            ),
        )
        assert guard.cache.objects["ConfigMap/settings"]["metadata"]["uid"] == uid


async def test_a_foreign_object_in_its_place_is_left_alone_and_named(
    cluster: ClusterInfo, namespace: str, tmp_path: Path
) -> None:
    store(tmp_path, config_map("settings", a="1"))
    await shell(kubectl, cluster, "-n", namespace, "create", "configmap", "settings", "--from-literal=mine=yes")
    async with run_guard(settings(cluster, namespace, tmp_path).guard) as guard:
        leading(guard)
        await eventually("a problem", lambda: guard.repairer.problems, lambda found: "ConfigMap/settings" in found)
        assert "kubectl-create" in guard.repairer.problems["ConfigMap/settings"]
    live = await shell(get, cluster, namespace, "ConfigMap/settings")
    assert live["data"] == {"mine": "yes"}


async def test_a_finished_job_is_not_run_again_when_deleted(
    cluster: ClusterInfo, namespace: str, tmp_path: Path
) -> None:
    """Neither the Sentinel that saw its end nor its successor restores it; an unfinished one is restored."""
    store(tmp_path, workload("Job", "report"), workload("Job", "open"))
    chosen = settings(cluster, namespace, tmp_path)
    async with run_guard(chosen.guard) as guard:
        leading(guard)
        await cached(
            guard,
            "both Jobs",
            lambda objects: (
                objects.get("Job/report", {}).get("status", {}).get("active") == 1 and "Job/open" in objects
            ),
        )
        ended = {
            "status": {
                "active": 0,
                "ready": 0,
                "conditions": [
                    {"type": "FailureTarget", "status": "True", "lastTransitionTime": "2026-01-01T00:00:01Z"},
                    {"type": "Failed", "status": "True", "lastTransitionTime": "2026-01-01T00:00:01Z"},
                ],
            }
        }
        await shell(
            kubectl, cluster, "-n", namespace, "patch", "job", "report", "--subresource=status", "--type=merge",
            "--patch", json.dumps(ended),
        )  # fmt: skip
        await eventually(
            "the end of the Job", lambda: guard.store.stacks["demo"].finished, lambda found: "Job/report" in found
        )
        uid = guard.cache.objects["Job/open"]["metadata"]["uid"]
        await shell(kubectl, cluster, "-n", namespace, "delete", "job", "report", "open")
        await cached(
            guard,
            "another Job",
            lambda objects: "Job/open" in objects and objects["Job/open"]["metadata"]["uid"] != uid,
        )
        assert "Job/report" not in guard.cache.objects
    async with run_guard(chosen.guard) as guard:
        leading(guard)
        await guard.repairer.settled()
        assert set(guard.cache.objects) == {"Job/open"}


async def test_a_secret_is_restored_with_its_value_from_the_vault(
    cluster: ClusterInfo, namespace: str, tmp_path: Path
) -> None:
    """The value is encrypted on the volume, and in no other file there."""
    references = {SECRET_REFERENCES_ANNOTATION: json.dumps({"agentSecret": "co_zvalue"})}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata("web", **references),
        "stringData": {"accountId": "co_zaccount"},
    }
    store(tmp_path, secret)
    chosen = settings(cluster, namespace, tmp_path)
    Vault(chosen.guard.vault_dir, chosen.engine_passphrase).put(OWNER, "co_zvalue", "very-secret-value")
    async with run_guard(chosen.guard) as guard:
        leading(guard)
        await cached(guard, "the Secret", lambda objects: "Secret/web" in objects)
        uid = guard.cache.objects["Secret/web"]["metadata"]["uid"]
        await shell(kubectl, cluster, "-n", namespace, "delete", "secret", "web")
        await cached(
            guard,
            "another Secret",
            lambda objects: "Secret/web" in objects and objects["Secret/web"]["metadata"]["uid"] != uid,
        )
    live = await shell(
        kubectl,
        cluster,
        "-n",
        namespace,
        "get",
        "secret",
        "web",
        "-o",
        "go-template={{.data.agentSecret | base64decode}}",
    )
    assert live == "very-secret-value"
    assert not files_with(tmp_path, b"very-secret-value")


async def test_a_follower_changes_nothing(cluster: ClusterInfo, namespace: str, tmp_path: Path) -> None:
    """A follower does not restore an object; without a known leader it restores but changes nothing."""
    store(tmp_path, config_map("settings", a="1"))
    async with run_guard(settings(cluster, namespace, tmp_path).guard) as guard:
        await cached(guard, "the ConfigMap", lambda objects: "ConfigMap/settings" in objects)
        await shell(
            kubectl, cluster, "-n", namespace, "patch", "configmap", "settings", "--patch", '{"data":{"a":"2"}}'
        )
        await cached(guard, "the change", lambda objects: objects["ConfigMap/settings"]["data"] == {"a": "2"})
        await guard.repairer.settled()
        guard.authority.follow()
        await shell(kubectl, cluster, "-n", namespace, "delete", "configmap", "settings")
        await cached(guard, "no ConfigMap", lambda objects: "ConfigMap/settings" not in objects)
        await guard.repairer.settled()
        assert await shell(get, cluster, namespace, "ConfigMap/settings") is None
        guard.authority.lead()
        await cached(
            guard, "the repair", lambda objects: objects.get("ConfigMap/settings", {}).get("data") == {"a": "1"}
        )


async def test_a_restarted_leader_sends_only_what_is_not_right(
    cluster: ClusterInfo, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    apply = KubernetesApi.apply

    async def counted(self: KubernetesApi, obj: dict[str, Any]) -> dict[str, Any]:
        sent.append(f"{obj['kind']}/{obj['metadata']['name']}")
        return await apply(self, obj)

    monkeypatch.setattr(KubernetesApi, "apply", counted)
    store(tmp_path, config_map("a"), config_map("b"), service("web"), workload("Deployment", "web"))
    chosen = settings(cluster, namespace, tmp_path).guard
    for expected in (["ConfigMap/a", "ConfigMap/b", "Deployment/web", "Service/web"], [], ["ConfigMap/b"]):
        sent.clear()
        async with run_guard(chosen) as guard:
            leading(guard)
            await cached(guard, "the objects", lambda objects: len(objects) == 4)
            await guard.repairer.settled()
            assert sorted(set(sent)) == expected
            await guard.repairer.verified.queue.wait_idle()
        if not expected:
            await shell(
                kubectl, cluster, "-n", namespace, "label", "--overwrite", "configmap", "b", f"{STACK_LABEL}=else"
            )


@pytest.mark.soak
async def test_a_watch_of_a_quiet_kind_gets_bookmarks_and_resumes_from_them(
    cluster: ClusterInfo, namespace: str, tmp_path: Path
) -> None:
    """The version of its list would be too old some minutes later, and all objects would be listed again.

    The API server sends the first one after a minute.
    """
    chosen, kind = settings(cluster, namespace, tmp_path), BY_KIND["ConfigMap"]
    async with connect(namespace, chosen.kubeconfig, chosen.kube_context) as api, asyncio.timeout(150):
        await shell(kubectl, cluster, "-n", namespace, "create", "configmap", "ours")
        await shell(
            kubectl, cluster, "-n", namespace, "label", "configmap", "ours", f"{MANAGED_BY_LABEL}={FIELD_MANAGER}"
        )
        objects, version = await api.list_all(kind)
        assert [live["metadata"]["name"] for live in objects] == ["ours"]
        await shell(kubectl, cluster, "-n", namespace, "create", "configmap", "foreign")
        async with aclosing(api.watch(kind, version)) as events:
            event, shown = await anext(events)
        assert event == "BOOKMARK"
        later = shown["metadata"]["resourceVersion"]
        assert int(later) > int(version)
        async with aclosing(api.watch(kind, later)) as events:
            waiting = asyncio.ensure_future(anext(events))
            await shell(kubectl, cluster, "-n", namespace, "delete", "configmap", "ours")
            event, gone = await waiting
        assert (event, gone["metadata"]["name"]) == ("DELETED", "ours")
