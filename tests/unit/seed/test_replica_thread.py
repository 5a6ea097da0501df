"""Replicas inside the seed: calls after one has ended, and the effect on the other replica."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from reside.alpha.bootstrap import SystemBlocks
from reside.model.errors import NotReady, ResideError
from reside.seed import leading, running
from reside.seed.leading import Leader
from reside.seed.thread import ReplicaThread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

DEADLINE = 30.0
SETTINGS = type("Settings", (), {"deadline": DEADLINE})


@asynccontextmanager
async def opened() -> AsyncIterator[str]:
    yield "value"


async def run_forever(_value: str) -> None:
    await asyncio.Event().wait()


async def fail(_value: str) -> None:
    raise ResideError("the lease was lost")


async def end_immediately(_value: str) -> None:
    """Do nothing."""


async def echo(value: str) -> str:
    return value


def started_thread(main: Any) -> ReplicaThread[str]:
    thread = ReplicaThread("alpha", opened, main)
    thread.start()
    thread.ready(DEADLINE)
    if main is not run_forever:
        thread._thread.join(DEADLINE)
    return thread


def seed(alpha: ReplicaThread[str], sentinel: ReplicaThread[str]) -> running.Seed:
    return running.Seed(alpha, sentinel, SystemBlocks("a", "s"), TemporaryDirectory())


def test_a_running_thread_executes_calls_until_it_is_stopped() -> None:
    alpha = started_thread(run_forever)
    assert alpha.run(echo, DEADLINE, "an echo") == "value"
    alpha.stop(DEADLINE)
    assert not alpha.alive


def test_calls_of_a_failed_thread_fail_with_its_error() -> None:
    alpha = started_thread(fail)
    for _ in range(2):
        with pytest.raises(ResideError, match="the lease was lost"):
            alpha.run(echo, DEADLINE, "an echo")


def test_calls_of_an_ended_thread_are_an_error() -> None:
    with pytest.raises(NotReady, match="alpha in the seed has ended"):
        started_thread(end_immediately).run(echo, DEADLINE, "an echo")


def test_a_new_seed_starts_only_after_all_threads_of_the_old_one_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    half, fresh = (
        seed(started_thread(fail), started_thread(run_forever)),
        seed(started_thread(run_forever), started_thread(run_forever)),
    )
    monkeypatch.setattr(running, "_running", [half])
    monkeypatch.setattr(running, "_start", lambda _settings: fresh)
    assert running.ensure_running(SETTINGS) is fresh
    assert not half.sentinel.alive
    assert running.ensure_running(SETTINGS) is fresh
    running.stop()
    assert not fresh.alpha.alive
    assert not fresh.sentinel.alive


@asynccontextmanager
async def opened_alpha() -> AsyncIterator[Any]:
    yield SimpleNamespace(lease="held")


def leader_thread(monkeypatch: pytest.MonkeyPatch, lead: Any) -> tuple[Leader, ReplicaThread[Any]]:
    monkeypatch.setattr(leading, "lead", lead)
    leader = Leader()
    thread = ReplicaThread("alpha", opened_alpha, leader.run)
    thread.start()
    return leader, thread


def test_a_leader_that_is_stopped_stays_connected_without_its_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    leader, thread = leader_thread(monkeypatch, run_forever)

    async def lease(alpha: Any) -> Any:
        return alpha.lease

    assert thread.run(lease, DEADLINE, "the lease") == "held"
    thread.run(leader.stop, DEADLINE, "the end of the term")
    assert thread.alive
    assert thread.run(lease, DEADLINE, "the lease") is None
    thread.stop(DEADLINE)
    assert not thread.alive


def test_the_error_of_a_leader_ends_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    leader, thread = leader_thread(monkeypatch, fail)
    with pytest.raises(ResideError, match="the lease was lost"):
        thread.run(leader.stop, DEADLINE, "the end of the term")
    thread.stop(DEADLINE)
