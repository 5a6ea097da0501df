"""Runs jobs side by side, each after those that it depends on."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Job:
    """One piece of work.

    Args:
        name: Unique among the jobs of one run.
        work: What to do, on a thread of its own.
        lane: Jobs of one lane run at most as many at once as the lane is wide.
        after: Names of jobs that must be finished first; names that no job has are ignored.
    """

    name: str
    work: Callable[[], None]
    lane: str
    after: frozenset[str] = field(default=frozenset())


def run_jobs(jobs: Sequence[Job], lanes: dict[str, int], stop: Callable[[], None]) -> None:
    """Run all jobs, in their order where nothing else decides it.

    Args:
        jobs: What to do.
        lanes: How many jobs of each lane run at once.
        stop: Called once when a job fails or the run is interrupted, to make the jobs that run end early.

    Raises:
        Exception: What the first failed job raised, after all running jobs ended.
    """
    names = {job.name for job in jobs}
    waiting = list(jobs)
    running: dict[Future[None], Job] = {}
    finished: set[str] = set()
    with ThreadPoolExecutor(max_workers=sum(lanes.values())) as pool:
        try:
            while waiting or running:
                for job in _ready(waiting, running.values(), names - finished, lanes):
                    waiting.remove(job)
                    running[pool.submit(job.work)] = job
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                    finished.add(running.pop(future).name)
        except BaseException:
            stop()
            raise


def _ready(waiting: Iterable[Job], running: Iterable[Job], open_names: set[str], lanes: dict[str, int]) -> list[Job]:
    """Return the jobs to start now."""
    free = dict(lanes)
    for job in running:
        free[job.lane] -= 1
    ready: list[Job] = []
    for job in waiting:
        if free[job.lane] > 0 and not job.after & open_names:
            free[job.lane] -= 1
            ready.append(job)
    return ready
