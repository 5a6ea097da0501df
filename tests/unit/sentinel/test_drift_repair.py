"""Drift repair with a cluster in memory: what is repaired, what is left alone, and the limit of repeated repairs."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.eventually import eventually
from unit.sentinel.repair_setup import A, config_map, new_setup, stored, versioned

from reside.model.constants import TEARDOWN_MARKER
from reside.model.stacks import DesiredStack
from reside.sentinel.guard import findings
from reside.sentinel.store.stacks import StackStore

pytestmark = pytest.mark.anyio


async def test_what_is_missing_at_the_first_list_is_created_and_then_left_alone(tmp_path: Path) -> None:
    async with new_setup(tmp_path, stored(config_map("a"))) as setup:
        assert setup.api.applied == [A]
        setup.repairer.examine_all()
        await setup.repairer.settled()
        assert setup.api.applied == [A]


async def test_a_change_is_reverted_by_the_leader_only(tmp_path: Path) -> None:
    async with new_setup(tmp_path, stored(config_map("a")), lead=False) as setup:
        changed = config_map("a", "2")
        setup.cache.note("MODIFIED", changed)
        await setup.repairer.settled()
        assert setup.cache.get(A) == changed
        setup.authority.lead()
        await setup.repairer.settled()
        assert (setup.cache.get(A) or {})["data"] == {"v": "1"}


async def test_what_a_long_first_list_shows_is_reverted_at_its_end(tmp_path: Path) -> None:
    live = [versioned("a", "7", "2"), *(versioned(f"other-{number}", "7") for number in range(1000))]
    async with new_setup(tmp_path, stored(config_map("a"), config_map("b")), live=live) as setup:
        assert sorted(setup.api.applied) == [A, "ConfigMap/b"]
        assert (setup.cache.get(A) or {})["data"] == {"v": "1"}


async def test_a_stack_is_not_repaired_while_the_engine_applies_it(tmp_path: Path) -> None:
    async with new_setup(tmp_path, stored(config_map("a"))) as setup:
        with setup.repairer.suspended("demo"):
            setup.delete(A)
            await setup.repairer.settled()
            assert setup.cache.get(A) is None
        await setup.repairer.settled()
        assert setup.cache.get(A) is not None


@pytest.mark.parametrize("late", [False, True], ids=["before its end", "after its end"])
async def test_what_the_engine_wrote_is_not_applied_again(tmp_path: Path, *, late: bool) -> None:
    """The watch shows it before or after the end of the operation. A status that changes meanwhile does not matter."""
    async with new_setup(tmp_path, stored(config_map("a"))) as setup:
        repaired = findings.REPAIRS.labels("ConfigMap", "apply")._value.get()
        setup.api.applied.clear()
        with setup.repairer.suspended("demo", [A]) as written:
            setup.store.save(stored(config_map("a", "2")))
            if not late:
                setup.cache.note("MODIFIED", versioned("a", "7", "2"))
                setup.cache.note("MODIFIED", {**versioned("a", "8", "2"), "status": {"x": 1}})
            written[A] = "7"
        await setup.repairer.settled()
        if late:
            setup.cache.note("MODIFIED", versioned("a", "6", "1"))
            await setup.repairer.settled()
            setup.cache.note("MODIFIED", versioned("a", "7", "2"))
        setup.repairer.examine_all()
        await setup.repairer.settled()
        assert setup.api.applied == []
        assert findings.REPAIRS.labels("ConfigMap", "apply")._value.get() == repaired
        setup.cache.note("MODIFIED", versioned("a", "9", "drift"))
        await setup.repairer.settled()
        assert setup.api.applied == [A]


@pytest.mark.parametrize("shown", [versioned("a", "9", "2"), None], ids=["changed", "deleted"])
async def test_what_was_written_after_the_engine_is_repaired(tmp_path: Path, shown: dict[str, Any] | None) -> None:
    """A list shows the later state only, without the one that the engine wrote."""
    async with new_setup(tmp_path, stored(config_map("a"))) as setup:
        setup.api.applied.clear()
        with setup.repairer.suspended("demo", [A]) as written:
            setup.store.save(stored(config_map("a", "2")))
            written[A] = "7"
        await setup.repairer.settled()
        assert setup.api.applied == [], "the watch is behind"
        if shown is None:
            setup.delete(A)
        else:
            setup.cache.note("MODIFIED", shown)
        await setup.repairer.settled()
        assert setup.api.applied == [A]


async def test_an_apply_that_changed_nothing_needs_no_event(tmp_path: Path) -> None:
    async with new_setup(tmp_path, stored(config_map("a"))) as setup:
        setup.cache.note("MODIFIED", versioned("a", "7"))
        await setup.repairer.settled()
        setup.api.applied.clear()
        with setup.repairer.suspended("demo", [A]) as written:
            written[A] = "7"
        await setup.repairer.settled()
        assert setup.api.applied == []
        setup.cache.note("MODIFIED", versioned("a", "8", "drift"))
        await setup.repairer.settled()
        assert setup.api.applied == [A]


async def test_changes_of_a_failed_apply_are_not_reverted_but_missing_objects_are_restored(tmp_path: Path) -> None:
    before = stored(config_map("a"), config_map("gone"))
    failed = before.during_apply(DesiredStack("demo", "co_zowner", (config_map("a", "2"),)))
    async with new_setup(tmp_path, failed) as setup:
        assert setup.api.applied == [A]
        setup.cache.note("MODIFIED", config_map("a", "2"))
        await setup.repairer.settled()
        assert setup.api.applied == [A]


async def test_repeated_changes_by_a_controller_are_reverted_with_back_off(tmp_path: Path) -> None:
    async with new_setup(tmp_path, stored(config_map("a"))) as setup:
        setup.api.after_apply = lambda _: setup.cache.note("MODIFIED", config_map("a", f"x{len(setup.api.applied)}"))
        setup.cache.note("MODIFIED", config_map("a", "first"))
        # the first five repairs are immediate, the sixth waits for its back-off
        await eventually("five repairs", lambda: setup.api.applied, lambda applied: len(applied) >= 5)
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(setup.api.applied) <= 6


async def test_a_failed_repair_is_a_known_problem_until_it_succeeds(tmp_path: Path) -> None:
    async with new_setup(tmp_path, stored(config_map("a"))) as setup:
        told: list[str] = []
        setup.repairer.listen(told.append)
        setup.api.refuse = True
        setup.delete(A)
        await eventually("a problem", lambda: setup.repairer.problems, lambda found: A in found)
        assert "no" in setup.repairer.problems[A]
        setup.api.refuse = False
        setup.repairer.examine_all()
        await eventually("no problem", lambda: setup.repairer.problems, lambda found: not found)
        assert setup.cache.get(A) is not None
        assert set(told) == {A}


async def test_nothing_is_restored_while_the_cluster_is_being_destroyed(tmp_path: Path) -> None:
    async with new_setup(tmp_path, stored(config_map("a"))) as setup:
        setup.cache.note("ADDED", config_map(TEARDOWN_MARKER.partition("/")[2]))
        setup.delete(A)
        await setup.repairer.settled()
        assert setup.cache.get(A) is None


async def test_a_starting_sentinel_restores_what_the_leader_wrote_last(tmp_path: Path) -> None:
    """Another Sentinel may have written to the volume since this one read it."""
    async with new_setup(tmp_path, stored(config_map("a")), lead=False) as setup:
        StackStore(tmp_path / "stacks").save(stored(config_map("a", "newer")))
        setup.delete(A)
        await setup.repairer.settled()
        assert (setup.cache.get(A) or {})["data"] == {"v": "newer"}


async def test_an_unreachable_api_server_is_not_reported_as_an_error_of_the_object(tmp_path: Path) -> None:
    """It is transient, and a report must not make a replica look broken in the meantime."""
    async with new_setup(tmp_path, stored(config_map("a"))) as setup:
        setup.api.away = 3
        setup.delete(A)
        await eventually("the repair", lambda: setup.cache.get(A))
        assert setup.api.away == 0
        assert not setup.repairer.problems
