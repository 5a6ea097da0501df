"""What other managers do to objects: left to them, told, reverted or removed; on a real API server.

The engine does not run.
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.eventually import eventually
from support.live_objects import live_objects
from support.sentinel import config_map, get, kubectl, metadata, settings, workload

from reside.local import ClusterInfo
from reside.model.constants import STRICT_ANNOTATION, YIELD_ANNOTATION
from reside.model.stacks import DesiredStack
from reside.sentinel.guard.guard import Guard, run_guard
from reside.sentinel.store.stacks import StackStore, StoredStack

pytestmark = pytest.mark.anyio
OWNER = "co_zowner"
WEB = "Deployment/web"
RESTARTED = "kubectl.kubernetes.io/restartedAt"


class World:
    """A stack of one object that a guard keeps, and other managers."""

    def __init__(self, cluster: ClusterInfo, namespace: str, folder: Path, manifest: dict[str, Any]) -> None:
        self.cluster, self.namespace, self.folder = cluster, namespace, folder
        self.key = f"{manifest['kind']}/{manifest['metadata']['name']}"
        stored = StoredStack("demo", OWNER).after_apply(DesiredStack("demo", OWNER, (manifest,)))
        StackStore(folder / "stacks").save(stored)
        self.changed = 0
        """Version of the object after the last command."""

    @property
    def guard_settings(self) -> Any:
        """Settings of the guard."""
        return settings(self.cluster, self.namespace, self.folder).guard

    async def shell(self, *arguments: str, stdin: str | None = None) -> None:
        """Run kubectl, and note the version that the object has afterwards."""
        await asyncio.to_thread(kubectl, self.cluster, "-n", self.namespace, *arguments, stdin=stdin)
        self.changed = version(await self.live())

    async def patch(self, manager: str, change: dict[str, Any], kind: str = "strategic") -> None:
        """Change the object as another field manager."""
        what, _, name = self.key.partition("/")
        await self.shell("patch", what, name, "--type", kind, "--patch", json.dumps(change), "--field-manager", manager)

    async def live(self) -> dict[str, Any]:
        """Return the live object."""
        found = await asyncio.to_thread(get, self.cluster, self.namespace, self.key)
        assert found is not None
        return found

    async def until(self, guard: Guard, what: str, holds: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """Wait until the guard has seen a live object after the last command, and has nothing more to do."""

        def is_new(live: dict[str, Any]) -> bool:
            return bool(live) and version(live) >= self.changed and bool(holds(live))

        await eventually(what, lambda: guard.cache.get(self.key) or {}, is_new)
        await guard.repairer.settled()
        return await self.live()

    async def events(self, reason: str) -> list[dict[str, Any]]:
        """Return the events about the object."""
        uid = (await self.live())["metadata"]["uid"]
        found = await asyncio.to_thread(live_objects, self.cluster, self.namespace, "Event")
        return [each for each in found if each["involvedObject"].get("uid") == uid and each["reason"] == reason]

    async def event(self, reason: str, words: str) -> dict[str, Any]:
        """Wait for an event about the object that says something."""

        def says(found: list[dict[str, Any]]) -> bool:
            return any(words in each["message"] for each in found)

        (event,) = await eventually(f"the event {reason}", lambda: self.events(reason), says)
        assert isinstance(event, dict)
        return event


def version(live: dict[str, Any]) -> int:
    """Return the resource version of an object; versions grow."""
    return int(live["metadata"]["resourceVersion"])


async def begin(world: World, guard: Guard) -> dict[str, Any]:
    """Wait until the object is as it is declared."""
    guard.authority.lead()
    return await world.until(guard, "the object", lambda _: True)


def sizes(live: dict[str, Any]) -> tuple[int, bool]:
    """Return the number of pods, and whether a Deployment was restarted."""
    template = live["spec"]["template"]["metadata"]
    return live["spec"]["replicas"], RESTARTED in (template.get("annotations") or {})


async def test_a_rollout_restart_is_not_reverted_while_an_edit_is(
    cluster: ClusterInfo, namespace: str, tmp_path: Path
) -> None:
    """Nor is it by later repairs of the object."""
    world = World(cluster, namespace, tmp_path, workload("Deployment", "web"))
    async with run_guard(world.guard_settings) as guard:
        before = await begin(world, guard)
        await world.shell("rollout", "restart", "deployment", "web")
        live = await world.until(guard, "the restart", lambda seen: sizes(seen) == (1, True))
        assert sizes(live) == (1, True)
        assert await world.events("Reverted") == []
        edit = {"metadata": {"annotations": {"added": "1"}}, "spec": {"hostNetwork": False, "priority": 3}}
        await world.patch("kubectl-edit", {"spec": {"replicas": 3, "paused": True, "template": edit}})
        live = await world.until(guard, "the repair", lambda seen: "paused" not in seen["spec"])
        assert sizes(live) == (1, True)
        assert "added" not in live["spec"]["template"]["metadata"]["annotations"]
        assert live["metadata"]["generation"] > before["metadata"]["generation"]
        later = {RESTARTED: "2100-01-01T00:00:00Z"}  # kubectl refuses it within a second
        await world.patch("kubectl-rollout", {"spec": {"template": {"metadata": {"annotations": later}}}})
        live = await world.until(
            guard,
            "the second restart",
            lambda seen: later.items() <= (seen["spec"]["template"]["metadata"].get("annotations") or {}).items(),
        )
        assert sizes(live) == (1, True)


async def test_a_yielded_field_keeps_the_value_of_its_manager(
    cluster: ClusterInfo, namespace: str, tmp_path: Path
) -> None:
    """It has the declared value at first. Repairs of other fields leave it, and it is no drift."""
    manifest = workload("Deployment", "web", replicas=2)
    manifest["metadata"]["annotations"] = {YIELD_ANNOTATION: "spec.replicas"}
    world = World(cluster, namespace, tmp_path, manifest)
    async with run_guard(world.guard_settings) as guard:
        assert sizes(await begin(world, guard)) == (2, False)
        await world.patch("autoscaler", {"spec": {"replicas": 7}})
        await world.until(guard, "the new size", lambda seen: sizes(seen) == (7, False))
        assert await world.events("Reverted") == []
        assert guard.repairer.findings_of(WEB) == ()
        await world.patch("kubectl-edit", {"spec": {"paused": True, "minReadySeconds": 5}})
        live = await world.until(guard, "the repair", lambda seen: "paused" not in seen["spec"])
        assert sizes(live) == (7, False)
        await world.shell("scale", "deployment", "web", "--replicas=4")
        live = await world.until(guard, "the size of a person", lambda seen: sizes(seen) == (4, False))
        assert sizes(live) == (4, False)


async def test_a_repair_is_an_event_with_the_change_and_who_made_it(
    cluster: ClusterInfo, namespace: str, tmp_path: Path
) -> None:
    world = World(cluster, namespace, tmp_path, workload("Deployment", "web"))
    async with run_guard(world.guard_settings) as guard:
        await begin(world, guard)
        created = await world.event("Restored", "did not exist")
        assert created["source"]["component"] == "kubernetes-sentinel"
        await world.patch("other-program", {"spec": {"replicas": 5}})
        await world.event("Reverted", "spec.replicas: 5 → 1 (other-program)")


async def test_an_event_about_a_secret_has_none_of_its_values(
    cluster: ClusterInfo, namespace: str, tmp_path: Path
) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata("s"), "stringData": {"password": "right-one"}}
    world = World(cluster, namespace, tmp_path, secret)
    async with run_guard(world.guard_settings) as guard:
        await begin(world, guard)
        await world.patch("thief", {"stringData": {"password": "wrong-one", "more": "added-one"}})
        event = await world.event("Reverted", "data.password: *** → *** (thief)")
        for hidden in ("right-one", "wrong-one", "added-one", "cmlnaHQtb25l", "d3Jvbmctb25l"):
            assert hidden not in json.dumps(event)


@pytest.mark.parametrize("strict", [False, True])
async def test_what_a_program_added_is_told_and_removed_only_if_the_stack_says_so(
    cluster: ClusterInfo, namespace: str, tmp_path: Path, strict: bool
) -> None:
    manifest = config_map("a", x="1")
    manifest["metadata"]["annotations"] = {STRICT_ANNOTATION: "true"} if strict else {}
    world = World(cluster, namespace, tmp_path, manifest)
    async with run_guard(world.guard_settings) as guard:
        await begin(world, guard)
        await world.patch("injector", {"data": {"y": "2"}, "metadata": {"finalizers": ["example.com/f"]}})
        await world.until(guard, "what was added", lambda seen: seen["metadata"].get("finalizers"))
        if strict:
            live = await world.until(guard, "the removal", lambda seen: seen["data"] == {"x": "1"})
            await world.event("Reverted", 'data.y: "2" → absent (injector)')
            assert live["metadata"]["finalizers"] == ["example.com/f"], "another program waits for it"
            assert "data.y" not in " ".join(guard.repairer.findings_of(world.key))
        else:
            live = await world.live()
            assert live["data"] == {"x": "1", "y": "2"}
            assert guard.repairer.findings_of(world.key)[0] == "data.y by injector was added, and stays"
        await world.patch("injector", {"metadata": {"finalizers": None}}, "merge")


async def test_a_fight_is_told_with_manager_and_field_and_ends_after_a_calm(
    cluster: ClusterInfo, namespace: str, tmp_path: Path
) -> None:
    """The back-off slows our part of it down. The calm ends once the test has seen the fight, however late that is."""
    world = World(cluster, namespace, tmp_path, config_map("a", x="1"))
    async with run_guard(world.guard_settings) as guard:
        await begin(world, guard)
        told: list[str] = []
        guard.repairer.listen(told.append)
        for number in range(3):
            await world.patch("rival", {"data": {"x": f"other {number}"}})
            await world.until(guard, "the repair", lambda seen: seen["data"] == {"x": "1"})
        (text,) = guard.repairer.findings_of(world.key)
        assert text.startswith("rival changes data.x again and again")
        await world.event("Fight", "rival changes data.x again and again")
        assert told == [world.key, world.key], "of the first change, and of the fight"
        assert guard.repairer.reverted_of(world.key) == ("rival changed data.x",)
        findings = guard.repairer.findings
        findings._fights.calm = 0.1
        findings._await_end(world.key)
        await eventually("the end of the fight", lambda: guard.repairer.findings_of(world.key), lambda found: not found)
        assert told == [world.key] * 3
