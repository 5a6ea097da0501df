"""Run jobs in parallel, each after those that it depends on."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Job:
    """One unit of work.

    Args:
        name: unique among the jobs of one run.
        work: the function to call, in a thread of its own.
        lane: name of the lane; its width limits how many of its jobs run at once.
        after: names of jobs that must be finished first; names without a job are ignored.
    """

    name: str
    work: Callable[[], None]
    lane: str
    after: frozenset[str] = field(default=frozenset())


def run_jobs(jobs: Sequence[Job], lanes: dict[str, int], stop: Callable[[], None]) -> None:
    """Run all jobs, in the given order unless dependencies and lanes require another.

    Args:
        jobs: the jobs.
        lanes: width of each lane.
        stop: called once when a job fails or the run is interrupted, to end the running jobs early.

    Raises:
        Exception: the error of the first job that failed, after all running jobs have ended.
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
