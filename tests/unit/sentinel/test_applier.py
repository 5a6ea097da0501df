"""The apply of one stack with an engine that only records: what is removed, and which secret values remain."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from unit.sentinel.applier_world import OWNER, FakeTermContext, Silent, applier_on, secret, stored

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL, TEARDOWN_MARKER
from reside.model.errors import Conflict, InvalidInput, NotAllowed, NotReady
from reside.model.stacks import DesiredStack
from reside.sentinel.engine import DeletionPending
from reside.sentinel.store.stacks import StoredStack
from reside.sentinel.term import applier as applying
from reside.sentinel.term.moves import _keys

pytestmark = pytest.mark.anyio


async def test_a_stack_is_not_removed_while_the_cluster_is_being_destroyed(tmp_path: Path) -> None:
    context = FakeTermContext(tmp_path)
    context.store.save(stored("demo"))
    labels = {MANAGED_BY_LABEL: FIELD_MANAGER}
    marker = {"kind": "ConfigMap", "metadata": {"name": TEARDOWN_MARKER.partition("/")[2], "labels": labels}}
    context.cache.note("ADDED", marker)
    applier = applier_on(context)
    with pytest.raises(NotReady, match="being destroyed"):
        await applier.handle("demo")
    assert context.destroyed == []
    context.cache.note("DELETED", marker)
    await applier.handle("demo")
    assert context.destroyed == ["demo"]


async def test_removing_a_stack_keeps_the_secret_values_of_one_that_is_just_being_applied(tmp_path: Path) -> None:
    """The objects of the other stack are not stored yet. Its value may have left Jazz, because its Secret is live."""
    context = FakeTermContext(tmp_path)
    context.store.save(stored("old", secret("old")))
    context.vault.put(OWNER, "co_zold", "unused soon")
    context.declared["new"] = DesiredStack("new", OWNER, (secret("new"),))
    applier = applier_on(context)
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        tasks.create_task(applier.handle("new"))
        await context.applying.wait()
        await applier.handle("old")
        assert context.vault.get(OWNER, "co_znew") == "of co_znew"
        assert context.vault.get(OWNER, "co_zold") is None
        context.may_end.set()


async def test_an_emptied_secret_value_is_not_replaced_by_its_earlier_value(tmp_path: Path) -> None:
    context = FakeTermContext(tmp_path)
    context.vault.put(OWNER, "co_zempty", "before")
    context.declared["demo"] = DesiredStack("demo", OWNER, (secret("empty"),))
    context.may_end.set()
    await applier_on(context).handle("demo")
    assert context.vault.get(OWNER, "co_zempty") == ""


@pytest.mark.parametrize("pending", [set(), {"Secret/b"}])
async def test_no_report_has_the_applied_revision_and_an_earlier_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pending: set[str]
) -> None:
    """The stack counts as applied from the moment it is stored in memory; its file is written after that."""
    context, cleared = FakeTermContext(tmp_path), []
    context.may_end.set()
    context.pending = pending
    seen: list[tuple[bool, bool]] = []
    put = context.store.put

    def observe(stored: StoredStack) -> None:
        put(stored)
        seen.append((stored.applied is not None, bool(cleared)))

    monkeypatch.setattr(context.store, "put", observe)
    context.declared["demo"] = DesiredStack("demo", OWNER, (secret("a"),))
    reporter = Silent()
    monkeypatch.setattr(reporter, "clear_fault", cleared.append, raising=False)
    with suppress(DeletionPending):  # the watches see nothing here
        await applier_on(context, reporter=reporter).handle("demo")
    assert seen == [(False, False), (True, True)]


@pytest.mark.parametrize(
    "refusal", [NotAllowed("no permission"), InvalidInput("bad"), NotReady("later"), Conflict("x")]
)
async def test_a_stack_is_accepted_only_while_its_latest_declaration_is(tmp_path: Path, refusal: Exception) -> None:
    """Also one that is stored and was accepted before, for whatever reason it is refused now."""
    context = FakeTermContext(tmp_path)
    context.may_end.set()
    context.declared["demo"] = DesiredStack("demo", OWNER, (secret("a"),))
    applier = applier_on(context)
    assert applier.reader.unaccepted() == {"demo"}
    await applier.handle("demo")
    assert applier.reader.unaccepted() == frozenset()
    context.refusal = refusal
    with pytest.raises(type(refusal)):
        await applier.handle("demo")
    assert applier.reader.unaccepted() == {"demo"}
    del context.declared["demo"]
    await applier.handle("demo")
    assert applier.reader.unaccepted() == frozenset()


async def test_a_stack_whose_object_another_one_has_begun_to_apply_in_the_meantime_is_not_applied(
    tmp_path: Path,
) -> None:
    context = FakeTermContext(tmp_path)
    context.declared["demo"] = DesiredStack("demo", OWNER, (secret("a"),))
    context.taken = Conflict("Secret/a belongs to the stack other")
    with pytest.raises(Conflict):
        await applier_on(context).handle("demo")
    assert not context.applying.is_set()
    assert "demo" not in context.store.stacks


def declare(context: FakeTermContext, name: str, *objects: dict[str, Any]) -> None:
    context.declared[name] = DesiredStack(name, OWNER, objects)


@pytest.mark.parametrize("removed", [False, True])
async def test_an_object_that_moves_to_another_stack_of_its_owner_is_not_deleted(tmp_path: Path, removed: bool) -> None:
    """The other stack is told that it may adopt the object now."""
    context, told = FakeTermContext(tmp_path), []
    context.may_end.set()
    applier = applier_on(context, told.append)
    declare(context, "old", secret("a"), secret("b"))
    await applier.handle("old")
    declare(context, "new", secret("b"))
    context.taken = Conflict("it belongs to the stack old")
    with pytest.raises(Conflict):
        await applier.handle("new")
    context.taken = None
    if removed:
        del context.declared["old"]
    else:
        declare(context, "old", secret("a"))
    await applier.handle("old")
    assert context.released == {"Secret/b"}
    assert told == ["new"]


async def test_a_stack_deletes_nothing_before_the_other_stacks_of_its_owner_were_read(tmp_path: Path) -> None:
    context = FakeTermContext(tmp_path)
    context.may_end.set()
    applier = applier_on(context)
    declare(context, "old", secret("a"), secret("b"))
    await applier.handle("old")
    declare(context, "new", secret("b"))
    declare(context, "old", secret("a"))
    with pytest.raises(NotReady, match="stack new, which may take them, is not read yet"):
        await applier.handle("old")
    assert context.store.stacks["old"].settled
    await applier.handle("new")
    await applier.handle("old")
    assert context.released == {"Secret/b"}


async def test_an_object_that_another_account_declares_does_not_move(tmp_path: Path) -> None:
    context = FakeTermContext(tmp_path)
    context.may_end.set()
    applier = applier_on(context)
    declare(context, "old", secret("a"), secret("b"))
    await applier.handle("old")
    context.authors["theirs"] = "co_zother"
    declare(context, "theirs", secret("b"))
    declare(context, "unread", secret("b"))
    context.authors["unread"] = "co_zother"
    await applier.handle("theirs")
    declare(context, "old", secret("a"))
    await applier.handle("old")
    assert context.released == frozenset()


@pytest.mark.parametrize(
    "objects", [None, 1, "x", [1, None, {}, {"metadata": 1}, {"kind": [], "metadata": {"name": {}}}]]
)
def test_declared_objects_of_any_shape_are_read(objects: Any) -> None:
    assert all(isinstance(key, str) for key in _keys(objects))


def config_map(name: str, **more: Any) -> dict[str, Any]:
    labels = {MANAGED_BY_LABEL: FIELD_MANAGER}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels, **more}}


LEAVING = config_map("gone", deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["example.com/never"])


async def test_deletions_are_awaited_outside_of_a_lane_until_the_watches_see_their_end(tmp_path: Path) -> None:
    context = FakeTermContext(tmp_path)
    context.store.save(stored("demo", config_map("gone"), config_map("kept")))
    context.declared["demo"] = DesiredStack("demo", OWNER, (config_map("kept"),))
    context.pending, applier = {"ConfigMap/gone"}, applier_on(context)
    context.may_end.set()
    context.cache.note("MODIFIED", LEAVING)
    await applier.handle("demo")
    kept = context.store.stacks["demo"]
    assert (kept.settled, kept.leaving, kept.keys()) == (False, {"ConfigMap/gone"}, {"ConfigMap/kept"})
    await applier.handle("demo")
    assert len(context.applied) == 1, "no operation while the object is being deleted"
    context.pending.clear()
    assert applier.again == []
    context.cache.note("DELETED", LEAVING)
    assert applier.again == ["demo"]
    await applier.handle("demo")
    assert context.store.stacks["demo"].settled
    assert len(context.applied) == 2


async def test_a_stack_is_removed_when_the_last_of_its_objects_is_gone(tmp_path: Path) -> None:
    context = FakeTermContext(tmp_path)
    context.store.save(stored("demo", config_map("gone")))
    context.pending, applier = {"ConfigMap/gone"}, applier_on(context)
    context.cache.note("MODIFIED", LEAVING)
    await applier.handle("demo")
    await applier.handle("demo")
    assert context.destroyed == ["demo"]
    assert context.store.stacks["demo"].leaving == {"ConfigMap/gone"}
    context.pending.clear()
    context.cache.note("DELETED", LEAVING)
    assert applier.again == ["demo"]
    await applier.handle("demo")
    assert "demo" not in context.store.stacks


async def test_a_deletion_that_the_watches_do_not_see_is_tried_again_with_back_off(tmp_path: Path) -> None:
    """An object that has lost our label is not watched; without a pause, one operation would follow another."""
    context = FakeTermContext(tmp_path)
    context.declared["demo"] = DesiredStack("demo", OWNER, (config_map("kept"),))
    context.pending, applier = {"ConfigMap/unlabelled"}, applier_on(context)
    context.may_end.set()
    with pytest.raises(DeletionPending, match="ConfigMap/unlabelled"):
        await applier.handle("demo")


async def test_a_newer_revision_ends_an_operation_that_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying, "PATIENCE_S", 0.0)
    context = FakeTermContext(tmp_path)
    context.declared["demo"] = DesiredStack("demo", OWNER, (config_map("a"),))
    both = applier_on(context)
    await both.read("demo")
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        tasks.create_task(both.applier.handle("demo"))
        await context.applying.wait()
        await both.read("demo")
        context.declared["demo"] = DesiredStack("demo", OWNER, (config_map("b"),))
        assert context.interrupted == []
        await both.read("demo")
    assert context.interrupted == ["demo"]
    context.interrupted.clear()
    await both.applier.handle("demo")
    assert [obj["metadata"]["name"] for spec in context.applied for obj in spec.objects] == ["a", "b"]
    assert context.store.stacks["demo"].settled


async def test_the_repairer_learns_which_versions_the_engine_wrote(tmp_path: Path) -> None:
    context = FakeTermContext(tmp_path)
    context.declared["demo"] = DesiredStack("demo", OWNER, (config_map("a"),))
    context.may_end.set()
    await applier_on(context).handle("demo")
    assert context.written == {"ConfigMap/a": "7"}


async def test_a_stack_that_is_applied_already_takes_no_lane(tmp_path: Path) -> None:
    context = FakeTermContext(tmp_path)
    context.store.save(stored("demo", config_map("a")))
    context.declared["demo"] = DesiredStack("demo", OWNER, (config_map("a"),))
    both = applier_on(context)
    await both.read("demo")
    assert both.reader.readings == {}
    assert context.updated == ["demo"]


async def test_a_stack_that_is_refused_after_it_was_read_is_not_applied(tmp_path: Path) -> None:
    context = FakeTermContext(tmp_path)
    context.declared["demo"] = DesiredStack("demo", OWNER, (config_map("a"),))
    both = applier_on(context)
    await both.read("demo")
    context.refusal = NotAllowed("revoked")
    with pytest.raises(NotAllowed):
        await both.read("demo")
    await both.applier.handle("demo")
    assert context.applied == []
