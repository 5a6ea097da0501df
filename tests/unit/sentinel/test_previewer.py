"""Candidates are read outside of the engine's lanes, and each gets one result, whatever happens."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from reside.model.errors import NotReady
from reside.model.kinds import BY_KIND
from reside.model.previews import ObjectChange
from reside.model.sentinel_data import CANDIDATE, VALUES
from reside.model.stacks import DesiredStack
from reside.policy.rules import Violation
from reside.sentinel.contract.desired_stacks import Rights
from reside.sentinel.engine import ChangeSet
from reside.sentinel.guard.cache import ObjectCache
from reside.sentinel.term.previews import EXPIRY_S, Previewer

pytestmark = pytest.mark.anyio
OWNER = "co_zowner"


class Results(dict[str, Any]):
    """A map in Jazz. It has values of its own, and has been deleted or not."""

    id = "co_zresults"
    destroyed = False

    def set(self, key: str, value: Any) -> None:
        """Set a member."""
        self[key] = value

    def delete(self, key: str) -> None:
        """Delete a member."""
        del self[key]

    def destroy(self) -> None:
        """Delete the map."""
        self.destroyed = True


class FakeNode:
    """A Jazz node, with the maps and the readers of each group."""

    def __init__(self) -> None:
        self.maps: dict[str, Results] = {}
        self.readers: list[str] = []

    def create_group(self, _: str) -> Any:
        """Return a group."""

        async def add_member(account: str, role: str) -> None:
            self.readers.append(f"{account} {role}")

        return SimpleNamespace(create_map=self._create_map, add_member=add_member)

    async def load_map(self, co_id: str) -> Results:
        """Return a map that was created."""
        return self.maps[co_id]

    def _create_map(self, members: dict[str, Any]) -> Results:
        created = Results(members)
        created.id = f"co_zvalues{len(self.maps)}"
        self.maps[created.id] = created
        return created


class FakePreviews(dict[str, Any]):
    """The map of candidates: each key names a map of the same name."""

    def history(self, key: str) -> list[Any]:
        """Return the edits of a key."""
        return [SimpleNamespace(by=OWNER, at=0, value=key, deleted=False)]

    def delete(self, key: str) -> None:
        """Delete an entry, as the Sentinel."""
        del self[key]


class FakeTerm:
    """What the previewer uses of a term. Candidates whose key begins with `unread` never arrive."""

    def __init__(self) -> None:
        self.results = Results()
        self.reading: set[str] = set()
        self.inside, self.most = 0, 0
        self.broken: Exception | None = None
        self.locks: dict[str, asyncio.Lock] = {}
        self.now_ms = 0
        self.again: list[tuple[str, float]] = []
        self.found: tuple[Violation, ...] = ()
        self.changes: tuple[ObjectChange, ...] = ()
        self.previews = FakePreviews()
        self.data = SimpleNamespace(previews=self.previews, results=self.results)
        self.node = FakeNode()
        self.replica = SimpleNamespace(node=self.node)
        self.cache = ObjectCache()
        api = SimpleNamespace(namespace="ns")
        self.guard: Any = SimpleNamespace(cache=self.cache, store=SimpleNamespace(stacks={}), api=api)
        self.engine = SimpleNamespace(preview=self._preview)

    def later(self, key: str, seconds: float) -> None:
        """Note a key that is to be handled again."""
        self.again.append((key, seconds))

    def rights(self) -> Rights:
        """Allow everything."""
        return Rights(lambda _account, _name: True, lambda _: None, self.now_ms)

    async def read(self, _: Any, entry: Any) -> tuple[Any, DesiredStack]:
        """Return an empty stack, or never."""
        self.reading.add(entry.value)
        if entry.value.startswith("unread"):
            await asyncio.Event().wait()
        if self.broken is not None:
            raise self.broken
        return None, DesiredStack(entry.value, OWNER, ())

    def review(self, _: DesiredStack) -> tuple[Violation, ...]:
        """Find what the test says."""
        return self.found

    def check_filled(self, _: DesiredStack) -> None:
        """Accept every stack."""

    def check_owner(self, _: DesiredStack) -> None:
        """Know no other owner."""

    async def check_adoption(self, *_: Any, **_how: Any) -> dict[str, str]:
        """Find no foreign object."""
        return {}

    def stack_lock(self, stack: str) -> asyncio.Lock:
        """Return the lock of a stack."""
        return self.locks.setdefault(stack, asyncio.Lock())

    async def _preview(self, _: Any) -> ChangeSet:
        self.inside += 1
        self.most = max(self.most, self.inside)
        await asyncio.sleep(0)
        self.inside -= 1
        return ChangeSet(self.changes, 0.0)


async def test_candidates_that_can_not_be_read_delay_no_other_and_the_engine_has_its_lanes() -> None:
    term: Any = FakeTerm()
    previewer = Previewer(term, lanes=2, later=term.later)
    keys = [*(f"unread-{number}" for number in range(20)), *(f"good-{number}" for number in range(10))]
    tasks = [asyncio.create_task(previewer.handle(key)) for key in keys]
    async with asyncio.timeout(60):
        await asyncio.gather(*tasks[20:])
    for task in tasks[:20]:
        task.cancel()
    assert {key for key in term.results if term.results[key][CANDIDATE] == key} == set(keys[20:])
    assert term.most == 2


async def test_candidates_of_a_stack_that_is_being_applied_delay_no_other() -> None:
    term: Any = FakeTerm()
    previewer = Previewer(term, lanes=2, later=term.later)
    async with term.stack_lock("busy"), asyncio.timeout(60):
        waiting = [asyncio.create_task(previewer.handle("busy")) for _ in range(3)]
        await previewer.handle("good")
    await asyncio.gather(*waiting)
    assert term.results.keys() == {"good", "busy"}


async def test_a_bug_is_a_result_and_is_raised_and_a_transient_error_is_no_result() -> None:
    term: Any = FakeTerm()
    previewer = Previewer(term, lanes=2, later=term.later)
    term.broken = KeyError("a secret")
    with pytest.raises(KeyError):
        await previewer.handle("bad")
    assert "unexpected KeyError" in term.results["bad"]["error"]
    assert "a secret" not in str(term.results)
    await previewer.handle("bad")
    term.broken = NotReady("later")
    with pytest.raises(NotReady):
        await previewer.handle("late")
    assert "late" not in term.results


def seen(name: str, generation: int) -> dict[str, Any]:
    """Return a live Deployment."""
    meta = {"name": name, "uid": "u", "generation": generation, "resourceVersion": f"{generation}"}
    return {"kind": "Deployment", "metadata": meta, "spec": {"replicas": generation}}


async def test_a_result_is_deleted_and_made_again_when_an_object_that_it_names_has_another_version() -> None:
    term: Any = FakeTerm()
    term.cache.replace(BY_KIND["Deployment"], [seen("web", 1), seen("other", 1)])
    term.changes = (
        ObjectChange("Deployment/web", "update", ("spec.replicas",)),
        ObjectChange("Deployment/other", "same"),
    )
    previewer = Previewer(term, lanes=2, later=term.later)
    await previewer.handle("one")
    assert term.results["one"]["changes"][0]["live"] == "u generation 1"
    term.cache.note("MODIFIED", seen("other", 2))
    term.cache.note("MODIFIED", seen("web", 1) | {"status": {}})
    assert term.again == []
    term.cache.note("MODIFIED", seen("web", 2))
    assert term.again == [("one", 0.0)]
    await previewer.handle("one")
    assert "one" not in term.results
    assert term.again[-1][1] > 0
    await previewer.handle("one")
    assert term.results["one"]["changes"][0]["live"] == "u generation 2"
    previewer.close()
    term.cache.note("MODIFIED", seen("web", 3))
    assert len(term.again) == 2


async def test_another_term_renews_a_result_whose_objects_changed_in_between() -> None:
    term: Any = FakeTerm()
    term.cache.replace(BY_KIND["Deployment"], [seen("web", 1)])
    term.changes = (ObjectChange("Deployment/web", "update", ("spec.replicas",)),)
    await Previewer(term, lanes=2, later=term.later).handle("one")
    term.cache.note("MODIFIED", seen("web", 2))
    later = Previewer(term, lanes=2, later=term.later)
    await later.handle("one")
    assert "one" not in term.results
    await later.handle("one")
    assert term.results["one"]["changes"][0]["live"] == "u generation 2"


async def test_values_are_in_a_map_that_only_the_author_can_read_and_that_goes_with_the_result() -> None:
    term: Any = FakeTerm()
    term.cache.replace(BY_KIND["Deployment"], [seen("web", 1)])
    term.changes = (ObjectChange("Deployment/web", "delete"), ObjectChange("Deployment/new", "create"))
    previewer = Previewer(term, lanes=2, later=term.later)
    await previewer.handle("one")
    assert "replicas" not in str(term.results)
    values = term.node.maps[term.results["one"][VALUES]]
    assert values["Deployment/web"][0]["before"]["spec"] == {"replicas": 1}
    assert term.node.readers == [f"{OWNER} reader"]
    term.now_ms = int(EXPIRY_S * 1000)
    await previewer.handle("one")
    assert values.destroyed


async def test_a_candidate_that_nobody_withdraws_expires() -> None:
    term: Any = FakeTerm()
    term.previews["old"] = "old"
    previewer = Previewer(term, lanes=2, later=term.later)
    await previewer.handle("old")
    assert "old" in term.results
    term.now_ms = int(EXPIRY_S * 1000)
    await previewer.handle("old")
    assert "old" not in term.results
    assert "old" not in term.previews


async def test_a_preview_tells_violations_of_mandatory_rules_from_advice() -> None:
    term: Any = FakeTerm()
    advisory = Violation("read-only-root", "Deployment/web", "it is not", "advisory", "It matters.", "set it")
    previewer = Previewer(term, lanes=2, later=term.later)
    term.found = (advisory,)
    await previewer.handle("advised")
    advice = {"rule": "read-only-root", "object": "Deployment/web", "message": "it is not", "reason": "It matters."}
    assert term.results["advised"]["advice"] == [advice]
    assert (term.results["advised"]["violations"], term.most) == ([], 1)
    term.found = (advisory, Violation("no-host-access", "Deployment/web", "hostPID is on: remove it"))
    await previewer.handle("refused")
    assert term.results["refused"]["violations"] == ["Deployment/web breaks no-host-access: hostPID is on: remove it"]
    assert term.results["refused"]["changes"] == []
