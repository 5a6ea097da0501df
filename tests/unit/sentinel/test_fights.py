"""Fights are found by repeated repairs of one field after one manager, and end after a calm."""

from __future__ import annotations

from reside.sentinel.guard.fights import Fights
from reside.sentinel.objects.managed_fields import Managed, member

REPLICAS, PAUSED = (Managed("hpa", member("spec", name)) for name in ("replicas", "paused"))
KEY = "Deployment/web"


def test_a_fight_begins_with_the_third_repair_of_a_field_and_is_told_once() -> None:
    fights = Fights(calm=100)
    assert [fights.note(KEY, [REPLICAS], now) for now in (0, 10, 20, 30)] == [[], [], [REPLICAS], []]
    (text,) = fights.texts(KEY)
    assert text.startswith("hpa changes spec.replicas again and again")
    assert fights.count() == 1
    assert fights.texts("Deployment/other") == []


def test_other_fields_and_other_managers_are_no_rounds_of_a_fight() -> None:
    fights = Fights(calm=100)
    culprits = [REPLICAS, PAUSED, Managed("vpa", REPLICAS.path), REPLICAS, PAUSED]
    assert [begun for culprit in culprits for begun in fights.note(KEY, [culprit], 1)] == []


def test_rare_changes_are_no_fight() -> None:
    fights = Fights(calm=100)
    assert [begun for round_ in range(9) for begun in fights.note(KEY, [REPLICAS], round_ * 100)] == []
    assert fights.next_end(KEY) is None


def test_a_fight_ends_after_a_calm() -> None:
    fights = Fights(calm=100)
    for now in (0, 10, 20):
        fights.note(KEY, [REPLICAS], now)
    assert fights.next_end(KEY) == 120
    assert not fights.expire(KEY, 119)
    fights.note(KEY, [REPLICAS], 119)
    assert not fights.expire(KEY, 200)
    assert fights.expire(KEY, 219)
    assert (fights.texts(KEY), fights.count(), fights.next_end(KEY)) == ([], 0, None)
    assert fights.note(KEY, [REPLICAS], 220) == []


def test_what_is_counted_of_an_object_is_limited() -> None:
    fights = Fights(calm=100)
    for number in range(1000):
        fights.note(KEY, [Managed("x", member(f"a{number}"))], 1)
    assert len(fights._rounds[KEY]) == 16
    fights.forget(KEY)
    assert fights._rounds == {}
