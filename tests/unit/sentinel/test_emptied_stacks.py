"""A stack without objects does not take the place of one with objects: that may be an accident."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from reside.model.constants import FIELD_MANAGER, KEEP_ANNOTATION, MANAGED_BY_LABEL, STACK_LABEL
from reside.model.errors import InvalidInput
from reside.model.stacks import DesiredStack
from reside.sentinel.guard.cache import ObjectCache
from reside.sentinel.store.stacks import StackStore, StoredStack
from reside.sentinel.term.context import TermContext

if TYPE_CHECKING:
    from pathlib import Path

OWNER = "co_zowner"
EMPTY = DesiredStack("demo", OWNER, ())


def config_map(name: str, stack: str = "demo") -> dict[str, Any]:
    labels = {MANAGED_BY_LABEL: FIELD_MANAGER, STACK_LABEL: stack}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}


@pytest.fixture
def context(tmp_path: Path) -> TermContext:
    guard: Any = SimpleNamespace(store=StackStore(tmp_path), cache=ObjectCache())
    nothing: Any = None
    return TermContext(nothing, nothing, guard, nothing, nothing)


@pytest.mark.parametrize("applied", [True, False])
def test_an_empty_stack_in_place_of_a_filled_one_is_refused_with_the_cure(context: TermContext, applied: bool) -> None:
    """Also one whose first apply is running, or has failed."""
    filled = DesiredStack("demo", OWNER, (config_map("a"),))
    stored = StoredStack("demo", OWNER)
    context.guard.store.save(stored.after_apply(filled) if applied else stored.during_apply(filled))
    with pytest.raises(InvalidInput, match="has 1, such as ConfigMap/a: delete its entry in `desired`"):
        context.check_filled(EMPTY)
    context.check_filled(filled)


def test_an_empty_stack_is_refused_while_live_objects_carry_its_label(context: TermContext) -> None:
    """The volume may have been lost."""
    context.guard.cache.note("ADDED", config_map("b", "other"))
    context.check_filled(EMPTY)
    kept, going = config_map("kept"), config_map("going")
    kept["metadata"]["annotations"] = {KEEP_ANNOTATION: "true"}
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    context.guard.cache.note("ADDED", kept)
    context.guard.cache.note("ADDED", going)
    context.check_filled(EMPTY)
    context.guard.cache.note("ADDED", config_map("a"))
    with pytest.raises(InvalidInput, match="ConfigMap/a"):
        context.check_filled(EMPTY)


def test_a_stack_that_was_always_empty_passes(context: TermContext) -> None:
    """The seed's is."""
    context.check_filled(EMPTY)
    context.guard.store.save(StoredStack("demo", OWNER).after_apply(EMPTY))
    context.check_filled(EMPTY)
