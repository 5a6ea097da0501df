"""Who may apply and change which objects: authors, owners of stacks, and managers outside of ReSide."""

import asyncio
import json
from typing import Any

import pytest
from integration.sentinel.setup import Setup
from integration.sentinel.stack_objects import live, secret
from support.eventually import eventually
from support.live_objects import live_objects
from support.sentinel import config_map, kubectl, service, workload

from reside.local import ClusterInfo
from reside.sentinel.guard.api import KubernetesApi

pytestmark = pytest.mark.anyio


async def failures(cluster: ClusterInfo, setup: Setup) -> list[dict[str, Any]]:
    """Return the Kubernetes events about failed applies."""
    found = await asyncio.to_thread(live_objects, cluster, setup.namespace, "Event")
    return [event for event in found if event["reason"] == "ApplyFailed"]


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
