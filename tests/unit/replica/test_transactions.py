"""What a transaction accepts as a write, and the order of its steps."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reside.jazz import JazzTimeout
from reside.locks import LockLost
from reside.replica.transactions import Transaction

pytestmark = pytest.mark.anyio


class Recorder:
    """A node and a held lock that record their calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.lost = asyncio.Event()
        self.answers = True
        self.is_slow = False

    async def check(self) -> None:
        """Confirm the lock, unless the test lost it."""
        self.calls.append("check")
        if self.lost.is_set():
            raise LockLost("reside/transaction/co_z", "the test took it")

    def check_lease(self) -> None:
        """Accept every write."""

    def mark_lost(self, reason: str) -> None:
        """Note that the lock is lost."""
        self.calls.append(f"lost: {reason}")
        self.lost.set()

    async def flush(self, *, timeout: float = 30.0) -> None:  # noqa: ASYNC109 - as Node.flush
        """Wait for the sync server, unless the test has stopped it."""
        self.calls.append("flush" if timeout == 30.0 else "last flush")
        if self.is_slow and timeout == 30.0:
            await asyncio.Event().wait()
        if not self.answers:
            raise JazzTimeout("no answer")


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def tx(recorder: Recorder) -> Transaction:
    both: Any = recorder
    return Transaction(both, both)


async def test_nothing_is_written_before_the_lock_is_confirmed(recorder: Recorder, tx: Transaction) -> None:
    tx.stage(lambda: recorder.calls.append("write"))
    await tx.commit()
    assert recorder.calls == ["check", "write", "flush"]


async def test_a_transaction_without_writes_sends_no_request(recorder: Recorder, tx: Transaction) -> None:
    await tx.commit()
    assert recorder.calls == []


async def test_a_coroutine_function_is_refused_as_a_write(tx: Transaction) -> None:
    async def write() -> None:
        pass

    refused: Any = write
    tx.stage(refused)
    with pytest.raises(TypeError, match="run_exclusively"):
        await tx.commit()


async def test_a_procedure_runs_between_confirmation_and_flush(recorder: Recorder, tx: Transaction) -> None:
    async def procedure() -> int:
        recorder.calls.append("procedure")
        return 7

    tx.stage(lambda: recorder.calls.append("write"))
    assert await tx.run_exclusively(procedure) == 7
    await tx.commit()
    assert recorder.calls == ["check", "write", "procedure", "flush"]


async def test_a_procedure_does_not_start_without_the_lock(recorder: Recorder, tx: Transaction) -> None:
    async def procedure() -> None:
        recorder.calls.append("procedure")

    recorder.lost.set()
    tx.stage(lambda: recorder.calls.append("write"))
    with pytest.raises(LockLost):
        await tx.run_exclusively(procedure)
    assert recorder.calls == ["check"]


async def test_what_a_procedure_has_written_before_its_error_is_acknowledged_before_the_lock_is_released(
    recorder: Recorder, tx: Transaction
) -> None:
    async def procedure() -> None:
        raise ValueError("of the procedure")

    with pytest.raises(ValueError, match="of the procedure"):
        await tx.run_exclusively(procedure)
    assert recorder.calls == ["check", "flush"]


async def test_a_lock_whose_writes_are_not_acknowledged_counts_as_lost(recorder: Recorder, tx: Transaction) -> None:
    """The next holder does not see these writes, so the node must not send them any more."""
    recorder.answers = False
    tx.stage(lambda: recorder.calls.append("write"))
    with pytest.raises(JazzTimeout):
        await tx.commit()
    assert recorder.calls[-1].startswith("lost: its writes were not acknowledged")


async def test_a_cancelled_transaction_waits_for_what_it_has_written(recorder: Recorder, tx: Transaction) -> None:
    recorder.is_slow = True
    tx.stage(lambda: recorder.calls.append("write"))
    task = asyncio.create_task(tx.commit())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert recorder.calls == ["check", "write", "flush", "last flush"]


async def test_writes_under_a_lost_lock_are_not_waited_for(recorder: Recorder, tx: Transaction) -> None:
    async def procedure() -> None:
        recorder.lost.set()
        raise LockLost("reside/transaction/co_z", "the test took it")

    with pytest.raises(LockLost):
        await tx.run_exclusively(procedure)
    assert recorder.calls == ["check"]
