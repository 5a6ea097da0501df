"""The apply of one stack with an engine that only records: what is removed, and which secret values remain."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL, SECRET_REFERENCES_ANNOTATION, TEARDOWN_MARKER
from reside.model.errors import Conflict, InvalidInput, NotAllowed, NotReady
from reside.model.stacks import DesiredStack
from reside.sentinel.engine import ChangeSet, DeletionPending, EngineUnavailable, StackSpec
from reside.sentinel.guard.cache import ObjectCache
from reside.sentinel.store.stacks import StackStore, StoredStack
from reside.sentinel.store.vault import Vault
from reside.sentinel.term import applier as applying
from reside.sentinel.term.applier import Applier
from reside.sentinel.term.moves import _keys
from reside.sentinel.term.reader import Reader

pytestmark = pytest.mark.anyio
OWNER = "co_zowner"


def secret(name: str) -> dict[str, Any]:
    """Return a Secret whose value is in the map `co_z<name>`."""
    annotations = {SECRET_REFERENCES_ANNOTATION: json.dumps({"value": f"co_z{name}"})}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "annotations": annotations}}


class Value:
    """A map in Jazz that holds a value, or a stack."""

    def __init__(self, co_id: str) -> None:
        self.id = co_id
        self.value = "" if co_id == "co_zempty" else f"of {co_id}"

    def edit(self, _: str) -> Any:
        """Return its one edit."""
        return SimpleNamespace(by=OWNER, value=self.value, deleted=False)

    def on_change(self, _: Any) -> Any:
        """Return a function without effect."""
        return lambda: None


class Source(Value):
    """The map of a declared stack, with its present objects."""

    def __init__(self, context: "FakeTermContext", name: str) -> None:
        super().__init__(f"co_zstack-{name}")
        self._context, self._name = context, name

    def edit(self, _: str) -> Any:
        """Return its last edit."""
        return SimpleNamespace(by=self._context.authors.get(self._name, OWNER))

    def get(self, _: str) -> Any:
        """Return its objects."""
        found = self._context.declared.get(self._name)
        return list(found.objects) if found else None


class Desired:
    """The map `desired`."""

    def __init__(self, context: "FakeTermContext") -> None:
        self._context = context

    def keys(self) -> Any:
        """Return the names of the declared stacks."""
        return self._context.declared.keys()

    def edit(self, name: str) -> Any:
        """Return the last edit of an entry."""
        return self._context.entry(name)


class FakeTermContext:
    """What the applier uses of a term: a real volume and a real vault; other parts record their calls."""

    def __init__(self, folder: Path) -> None:
        self.declared: dict[str, DesiredStack] = {}
        self.authors: dict[str, str] = {}
        self.destroyed: list[str] = []
        self.refusal: Exception | None = None
        self.taken: Exception | None = None
        self.released: frozenset[str] = frozenset()
        self.applied: list[StackSpec] = []
        self.interrupted: list[str] = []
        self.pending: set[str] = set()
        """Objects whose deletion does not end."""
        self.applying, self.may_end = asyncio.Event(), asyncio.Event()
        self.engine: Any = self
        self.lease: Any = SimpleNamespace(check=self._nothing)
        self.replica = SimpleNamespace(node=SimpleNamespace(load_map=self._load))
        self.store, self.vault = StackStore(folder / "stacks"), Vault(folder / "vault.json", SecretStr("x"))
        self.cache = ObjectCache()
        self.data = SimpleNamespace(desired=Desired(self))
        self.updated: list[str] = []
        self.written: dict[str, str] = {}
        repairer = SimpleNamespace(suspended=self._suspended, update=self.updated.append)
        self.guard = SimpleNamespace(store=self.store, vault=self.vault, cache=self.cache, repairer=repairer)

    def entry(self, name: str) -> Any:
        """Return the edit of the owner: a deletion unless the stack is declared."""
        return SimpleNamespace(deleted=name not in self.declared, by=self.authors.get(name, OWNER))

    async def read(self, name: str, _: Any) -> tuple[Value, DesiredStack]:
        """Return the declared stack."""
        return Source(self, name), self.declared[name]

    def check(self, _: DesiredStack) -> None:
        """Accept every stack, unless the test refuses it."""
        if self.refusal is not None:
            raise self.refusal

    async def check_adoption(self, *_: Any) -> dict[str, dict[str, str]]:
        """Find no conflicting owner."""
        return {}

    def check_held(self, _: DesiredStack) -> None:
        """Find no other holder, unless another stack was faster."""
        if self.taken is not None:
            raise self.taken

    @asynccontextmanager
    async def stack_lock(self, _: str) -> AsyncIterator[None]:
        """Let no other work wait."""
        yield

    async def apply(self, spec: StackSpec) -> ChangeSet:
        """Apply until `may_end` is set."""
        self.applied.append(spec)
        self.applying.set()
        self.released |= spec.released
        await self.may_end.wait()
        if self.pending:
            raise DeletionPending(frozenset(self.pending))
        if self.interrupted:
            raise EngineUnavailable("the operation was stopped before its end")
        return ChangeSet((), 0.0, {"ConfigMap/a": "7"})

    async def interrupt(self, name: str) -> None:
        """End the running operation, as the engine does."""
        self.interrupted.append(name)
        self.may_end.set()

    async def destroy(self, name: str, released: frozenset[str] = frozenset()) -> ChangeSet:
        """Destroy, as the engine does."""
        self.destroyed.append(name)
        self.released |= released
        if self.pending:
            raise DeletionPending(frozenset(self.pending))
        return ChangeSet((), 0.0)

    async def _nothing(self) -> None:
        pass

    async def _load(self, co_id: str, **_: Any) -> Value:
        return Value(co_id)

    @contextmanager
    def _suspended(self, _: str, __: Any = ()) -> Iterator[dict[str, str]]:
        yield self.written


class Silent:
    """A reporter without effect."""

    def __getattr__(self, _: str) -> Any:
        return lambda *_: None


class Both:
    """Reads a stack and then applies it, as the queues of a term do."""

    def __init__(self, context: Any, changed: Any) -> None:
        reporter: Any = Silent()
        self.again: list[str] = []
        self.reader = Reader(context, reporter, lambda _: None, lambda _: None)
        self.applier = Applier(context, reporter, self.reader, changed or self.again.append)

    async def read(self, name: str) -> None:
        """Read a stack, and tell the applier."""
        await self.reader.handle(name)
        self.applier.supersede(name)

    async def handle(self, name: str) -> None:
        """Read and apply a stack."""
        await self.read(name)
        await self.applier.handle(name)


def applier_on(context: FakeTermContext, changed: Any = None) -> Both:
    return Both(context, changed)


def stored(name: str, *objects: dict[str, Any]) -> StoredStack:
    return StoredStack(name, OWNER).after_apply(DesiredStack(name, OWNER, objects))


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
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
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
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
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
