"""What the API server is asked before an apply: objects that a stack holds are in the cache."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL, STACK_LABEL
from reside.model.kinds import KINDS
from reside.model.stacks import DesiredStack
from reside.sentinel.engine.adoption import ABSENT
from reside.sentinel.errors import ForeignObjects
from reside.sentinel.guard.cache import ObjectCache
from reside.sentinel.store.stacks import StackStore, StoredStack
from reside.sentinel.term.context import TermContext

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio
OWNER = "co_zowner"


def config_map(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels}}


def ours(name: str) -> dict[str, Any]:
    return config_map(name, **{MANAGED_BY_LABEL: FIELD_MANAGER, STACK_LABEL: "demo"})


class Api:
    """An API server that has some objects and counts what it is asked for."""

    def __init__(self, *objects: dict[str, Any]) -> None:
        self._objects = {f"ConfigMap/{obj['metadata']['name']}": obj for obj in objects}
        self.asked: list[str] = []

    async def get(self, key: str) -> dict[str, Any] | None:
        """Return an object."""
        self.asked.append(key)
        return self._objects.get(key)


def term(folder: Path, api: Api, *cached: dict[str, Any]) -> TermContext:
    """Return a term whose stack `demo` holds `a` and `b`."""
    store, cache, nothing = StackStore(folder), ObjectCache(), None
    store.save(StoredStack("demo", OWNER).after_apply(DesiredStack("demo", OWNER, (ours("a"), ours("b")))))
    for kind in KINDS:
        cache.replace(kind, [live for live in cached if live["kind"] == kind.kind])
    guard: Any = SimpleNamespace(store=store, cache=cache, api=api)
    unused: Any = nothing
    return TermContext(unused, unused, guard, unused, unused)


async def test_objects_that_the_stack_holds_cost_no_request(tmp_path: Path) -> None:
    api = Api(ours("a"), ours("b"))
    context = term(tmp_path, api, ours("a"), ours("b"))
    desired = (ours("a"), ours("b"), ours("new"))
    found = await context.check_adoption(DesiredStack("demo", OWNER, desired), desired)
    assert api.asked == ["ConfigMap/new"]
    assert found == {"ConfigMap/new": dict(ABSENT)}


async def test_a_held_object_that_has_lost_our_label_is_looked_up_and_refused(tmp_path: Path) -> None:
    api = Api(ours("a"), config_map("b"))
    context = term(tmp_path, api, ours("a"))
    desired = (ours("a"), ours("b"))
    with pytest.raises(ForeignObjects, match="ConfigMap/b exists and is managed by"):
        await context.check_adoption(DesiredStack("demo", OWNER, desired), desired)
    assert api.asked == ["ConfigMap/b"]


async def test_an_apply_trusts_the_cache_that_an_object_does_not_exist(tmp_path: Path) -> None:
    api = Api(config_map("new"))
    context = term(tmp_path, api, ours("a"), ours("b"))
    desired = (ours("a"), ours("b"), ours("new"))
    found = await context.check_adoption(DesiredStack("demo", OWNER, desired), desired, trusting=True)
    assert api.asked == []
    assert found == {"ConfigMap/new": dict(ABSENT)}


async def test_an_apply_asks_for_what_it_may_adopt_and_for_a_kind_that_was_not_listed(tmp_path: Path) -> None:
    api = Api(ours("known"))
    context = term(tmp_path, api, ours("known"))
    context.guard.cache = ObjectCache()
    context.guard.cache.note("ADDED", ours("known"))
    desired = (ours("known"), ours("new"))
    found = await context.check_adoption(DesiredStack("other", OWNER, desired), desired, trusting=True)
    assert sorted(api.asked) == ["ConfigMap/known", "ConfigMap/new"]
    assert found == {"ConfigMap/known": {"uid": "uid-known"}, "ConfigMap/new": dict(ABSENT)}
