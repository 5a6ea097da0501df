"""Which unknown objects are deleted at once, and which wait for an operator."""

from __future__ import annotations

from typing import Any

import pytest

from reside.model.constants import FIELD_MANAGER, KEEP_ANNOTATION, MANAGED_BY_LABEL
from reside.sentinel.term.prune_plan import PruneState, most, plan


def seen(key: str, **meta: Any) -> dict[str, Any]:
    """Return a live object; its uid is its key."""
    kind, _, name = key.partition("/")
    labels = {MANAGED_BY_LABEL: FIELD_MANAGER}
    return {"kind": kind, "metadata": {"name": name, "uid": key, "labels": labels, **meta}}


def live(*keys: str) -> dict[str, Any]:
    return {key: seen(key) for key in keys}


def maps(count: int, prefix: str = "stray") -> dict[str, Any]:
    return live(*(f"ConfigMap/{prefix}-{number}" for number in range(count)))


def names(found: Any) -> list[str]:
    return [each.object for each in found]


def test_unknown_objects_are_in_no_stack_and_have_no_controller() -> None:
    objects = live("Role/seed", "ConfigMap/known", "ConfigMap/stray") | {
        "ConfigMap/owned": seen("ConfigMap/owned", ownerReferences=[{"controller": True, "kind": "StatefulSet"}]),
        "ConfigMap/going": seen("ConfigMap/going", deletionTimestamp="2026-01-01T00:00:00Z"),
    }
    found = plan(PruneState(objects, {"ConfigMap/known"}))
    assert names(found.allowed) == ["ConfigMap/stray", "Role/seed"]
    assert (found.held, found.reasons) == ((), ())


@pytest.mark.parametrize(("value", "allowed"), [("true", []), ("false", ["ConfigMap/stray"])])
def test_an_object_with_the_annotation_keep_is_never_unknown(value: str, allowed: list[str]) -> None:
    objects = {"ConfigMap/stray": seen("ConfigMap/stray", annotations={KEEP_ANNOTATION: value})}
    assert names(plan(PruneState(objects, ())).allowed) == allowed


def test_nothing_is_deleted_while_a_stack_was_not_accepted() -> None:
    found = plan(PruneState(maps(1), (), unaccepted={"platform"}))
    assert names(found.held) == ["ConfigMap/stray-0"]
    assert found.allowed == ()
    assert "platform" in found.reasons[0]


def test_nothing_is_deleted_by_a_sentinel_whose_volume_was_empty() -> None:
    found = plan(PruneState(maps(1), (), established=False))
    assert (names(found.held), found.allowed) == (["ConfigMap/stray-0"], ())
    assert "volume was empty" in found.reasons[0]


@pytest.mark.parametrize(("total", "limit"), [(1, 5), (20, 5), (59, 5), (60, 6), (99, 9), (100, 10), (2000, 10)])
def test_at_most_ten_objects_or_a_tenth_are_deleted_at_once_and_five_always(total: int, limit: int) -> None:
    assert most(total) == limit
    kept = maps(total - min(total, limit), "kept")
    assert len(plan(PruneState(kept | maps(min(total, limit)), kept)).allowed) == min(total, limit)
    if total > limit:
        kept = maps(total - limit - 1, "kept")
        found = plan(PruneState(kept | maps(limit + 1), kept))
        assert (found.allowed, len(found.held)) == ((), limit + 1)
        assert f"{limit + 1} of {total} objects would be deleted" in found.reasons[0]


def test_objects_that_become_unknown_one_after_another_are_counted_together() -> None:
    assert plan(PruneState(maps(2), (), recent=3)).allowed
    found = plan(PruneState(maps(2), (), recent=4))
    assert (found.allowed, len(found.held)) == ((), 2)
    assert "after 4 in the last 10 minutes" in found.reasons[0]


def test_a_claim_waits_for_a_confirmation_and_holds_up_no_other_object() -> None:
    found = plan(PruneState(live("PersistentVolumeClaim/data", "ConfigMap/stray"), ()))
    assert (names(found.allowed), names(found.held)) == (["ConfigMap/stray"], ["PersistentVolumeClaim/data"])
    assert "can't be restored" in found.reasons[0]


@pytest.mark.parametrize("where", ["live", "desired"])
def test_the_claims_of_the_templates_of_a_stateful_set_are_its_own(where: str) -> None:
    database = seen("StatefulSet/db") | {"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}}
    objects = live(
        "PersistentVolumeClaim/data-db-0", "PersistentVolumeClaim/data-db-x", "PersistentVolumeClaim/log-db-0"
    )
    known = {"StatefulSet/db"}
    state = (
        PruneState(objects | {"StatefulSet/db": database}, known)
        if where == "live"
        else PruneState(objects, known, stateful_sets=[database])
    )
    assert names(plan(state).held) == ["PersistentVolumeClaim/data-db-x", "PersistentVolumeClaim/log-db-0"]


def test_what_an_operator_has_confirmed_is_deleted_and_nothing_else() -> None:
    """Also while a stack is unaccepted, the volume is new, or there are too many."""
    objects = maps(20) | live("PersistentVolumeClaim/data")
    confirmed = {"ConfigMap/stray-0", "PersistentVolumeClaim/data"}
    found = plan(PruneState(objects, (), unaccepted={"demo"}, established=False, confirmed=confirmed))
    assert names(found.confirmed) == ["ConfigMap/stray-0", "PersistentVolumeClaim/data"]
    assert len(found.held) == 19
    assert len(found.reasons) == 3


def test_a_confirmation_of_an_earlier_object_of_the_same_name_does_not_count() -> None:
    objects = {"PersistentVolumeClaim/data": seen("PersistentVolumeClaim/data", uid="second")}
    assert plan(PruneState(objects, (), confirmed={"first"})).confirmed == ()


def test_a_confirmed_object_that_is_in_a_stack_again_stays() -> None:
    found = plan(PruneState(maps(1), {"ConfigMap/stray-0"}, confirmed={"ConfigMap/stray-0"}))
    assert found.confirmed == ()


def test_a_reason_names_a_few_stacks_and_the_number_of_the_others() -> None:
    found = plan(PruneState(maps(1), (), unaccepted={f"s{number}" for number in range(8)}))
    assert "s0, s1, s2, s3, s4 and 3 more" in found.reasons[0]


@pytest.mark.parametrize("shape", [None, 1, [], [1], [{}], [{"metadata": 1}], "x"])
def test_templates_of_any_shape_are_read(shape: Any) -> None:
    for spec in ({"volumeClaimTemplates": shape}, shape):
        database = seen("StatefulSet/db") | {"spec": spec}
        assert names(plan(PruneState(live("PersistentVolumeClaim/a"), (), stateful_sets=[database])).held)
