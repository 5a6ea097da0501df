"""One term's deletions of unknown objects: what is deleted, published and remembered."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from support.eventually import eventually

from reside.common.workqueue import WorkQueue
from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL, TEARDOWN_MARKER
from reside.model.kinds import KINDS
from reside.model.stacks import DesiredStack
from reside.sentinel.backoff import APPLY_BACKOFF
from reside.sentinel.contract.desired_stacks import Rights
from reside.sentinel.errors import ClusterRefused
from reside.sentinel.guard.cache import ObjectCache
from reside.sentinel.store import prune_record as recording
from reside.sentinel.store.prune_record import PruneRecord, read_record, write_record
from reside.sentinel.store.stacks import StackStore, StoredStack
from reside.sentinel.term.prune import Pruner

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.anyio
OPERATOR = "co_zoperator"


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search soon after a change; the product waits for further changes first."""
    monkeypatch.setattr(Pruner.wake, "__defaults__", (0.001,))


def seen(key: str) -> dict[str, Any]:
    """Return a live object; its uid is its key."""
    kind, _, name = key.partition("/")
    return {"kind": kind, "metadata": {"name": name, "uid": key, "labels": {MANAGED_BY_LABEL: FIELD_MANAGER}}}


class Map(dict[str, Any]):
    """A map in Jazz: its last values and its listeners."""

    def __init__(self, **members: Any) -> None:
        super().__init__(members)
        self.edits: list[Any] = []
        self.listeners: list[Any] = []

    def on_change(self, listener: Any) -> Any:
        """Call the listener after each change."""
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def as_dict(self) -> dict[str, Any]:
        """Return the values."""
        return dict(self)

    def history(self, _: str) -> list[Any]:
        """Return the confirmations."""
        return self.edits

    def confirm(self, *uids: str) -> None:
        """Confirm, as an operator does."""
        self.edits.append(SimpleNamespace(by=OPERATOR, at=0, deleted=False, value=list(uids)))
        for listener in self.listeners:
            listener(self)


class FakeTerm:
    """A cluster and what the pruner needs of a term; the volume is real."""

    def __init__(self, folder: Path, *, careful: bool = False) -> None:
        self.deleted: list[str] = []
        self.refusals: list[Exception] = []
        self.cache = ObjectCache()
        for kind in KINDS:
            self.cache.replace(kind, [])
        self.store = StackStore(folder / "stacks")
        self.held, self.confirmed = Map(), Map()
        self.unaccepted: frozenset[str] = frozenset()
        root = SimpleNamespace(on_change=lambda _: lambda: None)
        self.context: Any = SimpleNamespace(
            data=SimpleNamespace(root=root, held=self.held, confirmed=self.confirmed, careful=careful),
            guard=SimpleNamespace(cache=self.cache, store=self.store, api=SimpleNamespace(delete=self._delete)),
            lease=SimpleNamespace(check=self._check),
            replica=SimpleNamespace(settings=SimpleNamespace()),
            rights=lambda: Rights(lambda account, _: account == OPERATOR, lambda _: None, 0),
        )
        self.reporter: Any = SimpleNamespace(
            desired={}, is_declared=self._is_declared, declared=self._declared, listen=lambda _: None
        )

    def _is_declared(self, key: str) -> bool:
        return any(key in self._declared(name) for name in self.reporter.desired)

    def _declared(self, name: str) -> frozenset[str]:
        return frozenset(self.reporter.desired[name].keys())

    def appear(self, *keys: str) -> None:
        """Let objects appear."""
        for key in keys:
            self.cache.note("ADDED", seen(key))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Pruner]:
        """Yield a pruner that has made its first pass."""
        stacks: WorkQueue = WorkQueue("stack", self._check, workers=1, backoff=APPLY_BACKOFF)
        reader: Any = SimpleNamespace(unaccepted=lambda: self.unaccepted)
        pruner = Pruner(self.context, (stacks,), reader, self.reporter)
        await pruner.begin()
        task = asyncio.create_task(pruner.run())
        try:
            await pruner._queue.wait_idle()
            yield pruner
        finally:
            pruner.close()
            task.cancel()
            await asyncio.wait({task})

    async def _delete(self, key: str, uid: str) -> None:
        assert uid == key
        if self.refusals:
            raise self.refusals.pop()
        self.deleted.append(key)
        self.cache.note("DELETED", seen(key))

    async def _check(self, *_: Any) -> None:
        pass


def a_stack() -> StoredStack:
    """Return a stored stack with one object."""
    stack = DesiredStack("demo", "co_zowner", (seen("ConfigMap/known"),))
    return StoredStack("demo", "co_zowner").after_apply(stack)


async def test_an_unknown_object_is_deleted_and_one_of_a_stored_or_desired_stack_stays(tmp_path: Path) -> None:
    term = FakeTerm(tmp_path)
    term.store.save(a_stack())
    term.reporter.desired["wanted"] = DesiredStack("wanted", "co_zowner", (seen("Secret/wanted"),))
    term.appear("ConfigMap/known", "Secret/wanted", "ConfigMap/stray")
    async with term.running():
        assert term.deleted == ["ConfigMap/stray"]
    assert term.held == {}


async def test_what_is_held_is_published_until_it_is_confirmed(tmp_path: Path) -> None:
    term = FakeTerm(tmp_path)
    term.store.save(a_stack())
    term.unaccepted = frozenset({"lost"})
    term.appear("ConfigMap/stray", "PersistentVolumeClaim/data")
    async with term.running() as pruner:
        assert term.deleted == []
        published = term.held["objects"]
        assert [each["object"] for each in published] == ["ConfigMap/stray", "PersistentVolumeClaim/data"]
        assert "lost" in term.held["reasons"][0]
        term.confirmed.confirm(*(each["uid"] for each in published))
        await pruner._queue.wait_idle()
        assert term.deleted == ["ConfigMap/stray", "PersistentVolumeClaim/data"]
        assert term.held == {"objects": [], "reasons": []}


async def test_a_volume_without_stacks_deletes_nothing_until_it_is_confirmed(tmp_path: Path) -> None:
    """Also after a restart; afterwards it deletes a further unknown object by itself."""
    for _ in range(2):
        term = FakeTerm(tmp_path)
        term.appear("ConfigMap/stray")
        async with term.running():
            assert term.deleted == []
        term.store.save(a_stack())
    async with term.running() as pruner:
        term.confirmed.confirm("ConfigMap/stray")
        await pruner._queue.wait_idle()
        assert term.deleted == ["ConfigMap/stray"]
        term.appear("ConfigMap/later")
        await pruner._queue.wait_idle()
        assert term.deleted == ["ConfigMap/stray", "ConfigMap/later"]


async def test_a_volume_without_stacks_is_established_once_nothing_is_unknown(tmp_path: Path) -> None:
    term = FakeTerm(tmp_path)
    term.unaccepted = frozenset({"demo"})
    async with term.running():
        assert read_record(term.store.prune_record) == PruneRecord(established=False)
    term.unaccepted = frozenset()
    async with term.running():
        assert read_record(term.store.prune_record) == PruneRecord(established=True)


async def test_the_volume_of_a_bootstrap_prunes_when_careful_mode_ends(tmp_path: Path) -> None:
    """The seed's objects are unknown then."""
    term = FakeTerm(tmp_path, careful=True)
    term.appear("Job/seed", "ServiceAccount/seed", "Role/seed", "RoleBinding/seed")
    async with term.running() as pruner:
        assert term.deleted == []
        term.context.data.careful = False
        pruner.wake()
        await pruner._queue.wait_idle()
        assert term.deleted == ["Job/seed", "Role/seed", "RoleBinding/seed", "ServiceAccount/seed"]


async def test_the_volume_of_an_earlier_version_prunes(tmp_path: Path) -> None:
    term = FakeTerm(tmp_path)
    term.store.save(a_stack())
    term.appear("ConfigMap/stray")
    async with term.running():
        assert term.deleted == ["ConfigMap/stray"]


async def test_deletions_of_the_last_minutes_count_after_a_restart(tmp_path: Path) -> None:
    term = FakeTerm(tmp_path)
    term.store.save(a_stack())
    for start in (0, 3):
        term.appear(*(f"ConfigMap/stray-{number}" for number in range(start, start + 3)))
        async with term.running():
            assert len(term.deleted) == 3
    assert len(term.held["objects"]) == 3
    record = read_record(term.store.prune_record)
    assert record is not None
    write_record(term.store.prune_record, PruneRecord(established=True, deleted=(0.0, 1.0, 2.0, 3.0)))
    async with term.running():
        assert len(term.deleted) == 6


async def test_a_deletion_that_the_cluster_refuses_is_tried_again_and_not_counted(tmp_path: Path) -> None:
    """The object may have been replaced at the same moment."""
    term = FakeTerm(tmp_path)
    term.store.save(a_stack())
    term.refusals = [ClusterRefused("the uid has changed", 409)]
    term.appear("ConfigMap/stray")
    async with term.running() as pruner:
        assert term.deleted == []
        record = read_record(term.store.prune_record)
        assert record is not None
        assert record.deleted == ()
        pruner.wake()
        await eventually("the deletion", lambda: term.deleted, lambda found: found == ["ConfigMap/stray"])


async def test_a_damaged_record_counts_as_that_of_an_empty_volume(tmp_path: Path) -> None:
    term = FakeTerm(tmp_path)
    term.store.save(a_stack())
    term.store.prune_record.write_text('{"established": tru')
    term.appear("ConfigMap/stray")
    async with term.running():
        assert term.deleted == []


async def test_nothing_is_deleted_while_the_cluster_is_being_destroyed(tmp_path: Path) -> None:
    term = FakeTerm(tmp_path)
    term.store.save(a_stack())
    term.appear(TEARDOWN_MARKER, "ConfigMap/stray")
    async with term.running():
        assert term.deleted == []


async def test_the_record_is_written_outside_of_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writers: list[threading.Thread] = []
    monkeypatch.setattr(recording, "write_file", lambda *_: writers.append(threading.current_thread()))
    term = FakeTerm(tmp_path)
    term.store.save(a_stack())
    term.appear("ConfigMap/stray")
    async with term.running():
        assert term.deleted == ["ConfigMap/stray"]
    assert len(writers) == 2
    assert threading.main_thread() not in writers


async def test_a_change_of_an_object_of_a_stack_causes_no_search(tmp_path: Path) -> None:
    term = FakeTerm(tmp_path)
    term.store.save(a_stack())
    async with term.running() as pruner:
        term.appear("ConfigMap/known")
        assert pruner._queue.idle
        term.appear("ConfigMap/stray")
        assert not pruner._queue.idle


async def test_a_search_looks_only_at_what_may_be_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    term = FakeTerm(tmp_path)
    names = [f"known-{number}" for number in range(50)]
    stack = DesiredStack("demo", "co_zowner", tuple(seen(f"ConfigMap/{name}") for name in names))
    term.store.save(StoredStack("demo", "co_zowner").after_apply(stack))
    term.appear(*(f"ConfigMap/{name}" for name in names))
    async with term.running() as pruner:
        looked: list[str] = []
        known = pruner._is_known
        monkeypatch.setattr(pruner, "_is_known", lambda key: (looked.append(key), known(key))[1])
        pruner.wake()
        await pruner._queue.wait_idle()
        assert looked == []
        smaller = DesiredStack("demo", "co_zowner", stack.objects[1:])
        term.store.save(term.store.stacks["demo"].after_apply(smaller))
        await pruner._queue.wait_idle()
        assert term.deleted == ["ConfigMap/known-0"]
        assert looked == ["ConfigMap/known-0"]
