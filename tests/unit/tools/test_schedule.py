"""The toolchain's build: which jobs run in parallel, and their order."""

import threading
from collections.abc import Callable

import pytest

from tools.builder.schedule import Job, run_jobs
from tools.builder.units import UNITS

_SECONDS = 20.0


def nothing() -> None:
    pass


class Recorded:
    """Jobs that record when they begin and end."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self._lock = threading.Lock()

    def job(
        self, name: str, lane: str = "builds", after: frozenset[str] = frozenset(), work: Callable[[], None] = nothing
    ) -> Job:
        """Return a job that does this work."""

        def recorded() -> None:
            with self._lock:
                self.events.append(f"{name} begins")
            work()
            with self._lock:
                self.events.append(f"{name} ends")

        return Job(name, recorded, lane, after)


def test_a_job_begins_after_those_that_it_depends_on() -> None:
    jobs = Recorded()
    run_jobs(
        [
            jobs.job("second", after=frozenset({"first"})),
            jobs.job("third", after=frozenset({"second"})),
            jobs.job("first"),
        ],
        {"builds": 3},
        nothing,
    )
    assert jobs.events == [f"{name} {what}" for name in ("first", "second", "third") for what in ("begins", "ends")]


def test_a_dependency_that_is_not_part_of_the_run_is_ignored() -> None:
    jobs = Recorded()
    run_jobs([jobs.job("only", after=frozenset({"built before"}))], {"builds": 1}, nothing)
    assert jobs.events == ["only begins", "only ends"]


def test_jobs_of_one_lane_run_one_at_a_time_where_it_is_one_wide() -> None:
    jobs = Recorded()
    run_jobs([jobs.job("a"), jobs.job("b"), jobs.job("c")], {"builds": 1}, nothing)
    assert jobs.events == [f"{name} {what}" for name in ("a", "b", "c") for what in ("begins", "ends")]


def test_jobs_of_different_lanes_run_in_parallel() -> None:
    jobs = Recorded()
    both = threading.Barrier(2)

    def meet() -> None:
        both.wait(_SECONDS)

    run_jobs([jobs.job("a", work=meet), jobs.job("b", "downloads", work=meet)], {"builds": 1, "downloads": 1}, nothing)
    assert sorted(jobs.events[:2]) == ["a begins", "b begins"]


def test_a_failure_stops_what_runs_and_starts_nothing_more() -> None:
    jobs = Recorded()
    stopped = threading.Event()

    def wait_for_the_stop() -> None:
        assert stopped.wait(_SECONDS)

    def fail() -> None:
        raise ValueError("no compiler")

    running = jobs.job("running", work=wait_for_the_stop)
    with pytest.raises(ValueError, match="no compiler"):
        run_jobs([running, jobs.job("failing", work=fail), jobs.job("waiting")], {"builds": 2}, stopped.set)
    assert "running ends" in jobs.events
    assert "waiting begins" not in jobs.events


def test_units_are_built_after_those_whose_packages_they_use() -> None:
    names = [unit.name for unit in UNITS]
    for position, unit in enumerate(UNITS):
        assert unit.after <= set(names[:position]), unit.name
