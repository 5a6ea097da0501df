"""Full collections look at what was made since the last one, and now and then at everything."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

import pytest

from reside.common import collector
from reside.common.collector import Freezer

if TYPE_CHECKING:
    from collections.abc import Iterator


class Clock:
    """A clock that stands still."""

    time = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.time


class Node:
    """A part of a cycle."""

    def __init__(self) -> None:
        self.other: Node | None = self


@pytest.fixture
def clock() -> Iterator[Clock]:
    found = Clock()
    end = Freezer(found).install()
    yield found
    end()


def cycle() -> weakref.ref[Node]:
    return weakref.ref(Node())


def test_what_survives_is_not_looked_at_again(clock: Clock) -> None:
    made = [[number] for number in range(1000)]
    before = gc.get_freeze_count()
    gc.collect()
    assert gc.get_freeze_count() >= before + 1000
    assert not any(each in gc.get_objects(generation=2) for each in made[:3])


def test_full_collections_come_more_often_until_the_end() -> None:
    before = gc.get_threshold()
    end = Freezer().install()
    younger = gc.get_threshold()[2]
    end()
    assert younger < before[2]
    assert gc.get_threshold() == before


def test_garbage_is_collected_and_so_is_what_is_frozen_without_a_cycle(clock: Clock) -> None:
    young, kept = cycle(), Node()
    gc.collect()
    assert young() is None
    frozen = weakref.ref(kept)
    kept.other = None
    del kept
    assert frozen() is None


def test_frozen_cycles_are_collected_after_hours(clock: Clock) -> None:
    kept = Node()
    gc.collect()
    frozen = weakref.ref(kept)
    del kept
    gc.collect()
    assert frozen() is not None
    clock.time = 7 * 3600.0
    gc.collect()  # everything is looked at in the next one
    gc.collect()
    assert frozen() is None
    kept = Node()
    gc.collect()
    frozen = weakref.ref(kept)
    del kept
    gc.collect()
    assert frozen() is not None, "for the next hours, only what is new is looked at"


def test_frozen_cycles_are_collected_when_there_are_many(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Node()
    gc.collect()
    frozen = weakref.ref(kept)
    del kept
    monkeypatch.setattr(collector, "_GROWTH", 0.5)
    gc.collect()
    gc.collect()
    assert frozen() is None
