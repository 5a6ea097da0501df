"""A volume, a vault and an engine that only records, for tests of the applier."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pydantic import SecretStr

from reside.model.constants import SECRET_REFERENCES_ANNOTATION
from reside.model.stacks import DesiredStack
from reside.sentinel.engine import ChangeSet, DeletionPending, EngineUnavailable, StackSpec
from reside.sentinel.guard.cache import ObjectCache
from reside.sentinel.store.stacks import StackStore, StoredStack
from reside.sentinel.store.vault import Vault
from reside.sentinel.term.applier import Applier
from reside.sentinel.term.reader import Reader

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
        self.store, self.vault = StackStore(folder / "stacks"), Vault(folder / "vault", SecretStr("x"))
        self.cache = ObjectCache()
        self.data = SimpleNamespace(desired=Desired(self), owner=lambda _: None)
        self.updated: list[str] = []
        self.written: dict[str, str] = {}
        repairer = SimpleNamespace(
            suspended=self._suspended, update=self.updated.append, take_over=lambda _: self._nothing()
        )
        self.guard = SimpleNamespace(store=self.store, vault=self.vault, cache=self.cache, repairer=repairer)

    def entry(self, name: str) -> Any:
        """Return the edit of the owner: a deletion unless the stack is declared."""
        return SimpleNamespace(deleted=name not in self.declared, by=self.authors.get(name, OWNER))

    async def read(self, name: str, _: Any) -> tuple[Value, DesiredStack]:
        """Return the declared stack."""
        return Source(self, name), self.declared[name]

    def review(self, _: DesiredStack) -> tuple[()]:
        """Find no violation."""
        return ()

    def check(self, _: DesiredStack, _found: Any) -> None:
        """Accept every stack, unless the test refuses it."""
        if self.refusal is not None:
            raise self.refusal

    async def check_adoption(self, *_: Any, **_how: Any) -> dict[str, dict[str, str]]:
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

    progress = SimpleNamespace(shown=lambda *_: nullcontext())

    def __getattr__(self, _: str) -> Any:
        return lambda *_: None


class Both:
    """Reads a stack and then applies it, as the queues of a term do."""

    def __init__(self, context: Any, changed: Any, reporter: Any) -> None:
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


def applier_on(context: FakeTermContext, changed: Any = None, reporter: Any = None) -> Both:
    return Both(context, changed, reporter or Silent())


def stored(name: str, *objects: dict[str, Any]) -> StoredStack:
    return StoredStack(name, OWNER).after_apply(DesiredStack(name, OWNER, objects))
