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


class Process:
    """What is known of the process."""

    time = 0.0
    peak = 100.0


class Node:
    """A part of a cycle."""

    def __init__(self) -> None:
        self.other: Node | None = self


@pytest.fixture
def process() -> Iterator[Process]:
    found = Process()
    end = Freezer(lambda: found.time, lambda: found.peak).install()
    yield found
    end()


def cycle() -> weakref.ref[Node]:
    return weakref.ref(Node())


def frozen_cycle() -> weakref.ref[Node]:
    kept = Node()
    gc.collect()
    return weakref.ref(kept)


def test_what_survives_is_not_looked_at_again(process: Process) -> None:
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


def test_garbage_is_collected_and_so_is_what_is_frozen_without_a_cycle(process: Process) -> None:
    young, kept = cycle(), Node()
    gc.collect()
    assert young() is None
    frozen = weakref.ref(kept)
    kept.other = None
    del kept
    assert frozen() is None


def test_frozen_cycles_are_collected_after_hours(process: Process) -> None:
    frozen = frozen_cycle()
    gc.collect()
    assert frozen() is not None
    process.time = 7 * 3600.0
    gc.collect()  # everything is looked at in the next one
    gc.collect()
    assert frozen() is None
    frozen = frozen_cycle()
    gc.collect()
    assert frozen() is not None, "for the next hours, only what is new is looked at"


def test_frozen_cycles_are_collected_when_the_process_has_grown(process: Process) -> None:
    frozen = frozen_cycle()
    process.peak = 250.0
    gc.collect()
    gc.collect()
    assert frozen() is not None
    process.peak = 350.0
    gc.collect()  # everything is looked at in the next one
    gc.collect()
    assert frozen() is None
    frozen = frozen_cycle()
    process.peak = 1000.0
    gc.collect()
    assert frozen() is not None, "the process has not grown much since"


def test_what_is_frozen_is_not_counted(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """To count it visits each object, which took as long as a collection."""
    counted: list[int] = []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counted.append(1) or 0)
    gc.collect()
    gc.collect()
    assert counted == []


def test_the_memory_of_the_process_is_known() -> None:
    assert collector._peak() > 1024
