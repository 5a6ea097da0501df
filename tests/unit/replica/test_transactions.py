"""What a transaction accepts as a write, and the order of its steps."""

from __future__ import annotations

from typing import Any

import pytest

from reside.locks import LockLost
from reside.replica.transactions import Transaction

pytestmark = pytest.mark.anyio


class Recorder:
    """A node and a held lock that record their calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.lost = False

    async def check(self) -> None:
        """Confirm the lock, unless the test lost it."""
        self.calls.append("check")
        if self.lost:
            raise LockLost("reside/transaction/co_z", "the test took it")

    def check_lease(self) -> None:
        """Accept every write."""

    async def flush(self) -> None:
        """Wait for the sync server."""
        self.calls.append("flush")


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

    recorder.lost = True
    tx.stage(lambda: recorder.calls.append("write"))
    with pytest.raises(LockLost):
        await tx.run_exclusively(procedure)
    assert recorder.calls == ["check"]
