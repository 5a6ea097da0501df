"""Transactions of replicas are exclusive, read current content, and write only while the lock is held."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from reside.jazz import Node
from reside.locks import LockLost
from reside.locks.etcd import Etcd
from reside.model.errors import Conflict
from reside.replica import Context, Replica

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.replicas import AlphaDouble

    from reside.jazz import CoMap

pytestmark = pytest.mark.anyio


@pytest.fixture
async def twins(alpha_double: AlphaDouble) -> AsyncIterator[tuple[Context, Context]]:
    """Two processes of one replica, as during an update."""
    identity = await alpha_double.identity("twin")
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(Replica().start(identity.settings, serve=False))
        second = await stack.enter_async_context(Replica().start(identity.settings, serve=False))
        yield first, second


@pytest.fixture
async def counter(twins: tuple[Context, Context]) -> CoMap:
    made = twins[0].public.create_map({"count": 0})
    await twins[0].node.flush()
    return made


async def test_increments_from_two_processes_are_all_kept(twins: tuple[Context, Context], counter: CoMap) -> None:
    """Each transaction reads what the previous one wrote in another process, without an explicit wait."""

    async def increment(context: Context) -> None:
        for _ in range(10):
            async with context.transaction(counter.id) as tx:
                count = await tx.load(counter.id)
                seen = count["count"]
                tx.stage(lambda count=count, seen=seen: count.set("count", seen + 1))

    await asyncio.gather(*(increment(context) for context in twins))
    async with twins[0].transaction(counter.id) as tx:
        assert (await tx.load(counter.id))["count"] == 20


async def test_writes_have_reached_the_server_when_the_transaction_ends(
    alpha_double: AlphaDouble, twins: tuple[Context, Context], counter: CoMap
) -> None:
    async with twins[0].transaction(counter.id) as tx:
        tx.stage(lambda: counter.set("count", 7))
        assert counter["count"] == 0
    async with Node(alpha_double.servers.jazz.url, await alpha_double.account("reader")) as reader:
        await reader.login()
        assert (await reader.load_map(counter.id))["count"] == 7


async def test_after_an_error_in_the_body_nothing_is_written_and_the_object_is_unlocked(
    twins: tuple[Context, Context], counter: CoMap
) -> None:
    with pytest.raises(Conflict):
        await _increment_then_refuse(twins[0], counter)
    async with twins[1].transaction(counter.id) as tx:
        assert (await tx.load(counter.id))["count"] == 0


async def test_a_holder_that_lost_its_lock_writes_nothing(
    alpha_double: AlphaDouble, twins: tuple[Context, Context], counter: CoMap
) -> None:
    """The lease ended while the body ran, as after a long pause of the process; another process has written since."""
    with pytest.raises(LockLost):
        await _increment_while_the_lease_ends(alpha_double, twins, counter)
    assert counter["count"] == 1


async def test_a_procedure_runs_after_the_staged_writes_and_its_result_is_returned(
    twins: tuple[Context, Context], counter: CoMap
) -> None:
    async def add_member() -> str:
        await counter.group.add_member("everyone", "reader")
        counter.set("count", 2)
        return "added"

    async with twins[0].transaction(counter.id) as tx:
        tx.stage(lambda: counter.set("count", 1))
        assert await tx.run_exclusively(add_member) == "added"
        tx.stage(lambda: counter.set("count", 3))
    assert [edit.value for edit in counter.history("count")] == [0, 1, 2, 3]


async def test_a_procedure_does_not_start_without_the_lock(
    alpha_double: AlphaDouble, twins: tuple[Context, Context], counter: CoMap
) -> None:
    with pytest.raises(LockLost):
        await _run_after_the_lease_ended(alpha_double, twins[0], counter)
    assert counter["count"] == 0


async def test_a_procedure_that_was_stopped_until_its_lease_may_have_expired_writes_nothing_more(
    twins: tuple[Context, Context], counter: CoMap, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process was stopped between two writes, and continues before it has noticed the loss of the lock."""
    with pytest.raises(LockLost, match="was not renewed"):
        await _write_after_a_stop(twins[0], counter, monkeypatch)
    assert counter["count"] == 1
    counter.set("count", 3)  # the fence ends with the transaction


async def _write_after_a_stop(context: Context, counter: CoMap, monkeypatch: pytest.MonkeyPatch) -> None:
    async def procedure() -> None:
        counter.set("count", 1)
        await context.node.flush()
        loop = asyncio.get_running_loop()
        now = loop.time()
        monkeypatch.setattr(loop, "time", lambda: now + 60)
        try:
            counter.set("count", 2)
        finally:
            monkeypatch.undo()

    async with context.transaction(counter.id) as tx:
        await tx.run_exclusively(procedure)


async def _increment_then_refuse(context: Context, counter: CoMap) -> None:
    async with context.transaction(counter.id) as tx:
        tx.stage(lambda: counter.set("count", 1))
        raise Conflict("seen something")


async def _run_after_the_lease_ended(alpha_double: AlphaDouble, context: Context, counter: CoMap) -> None:
    async def procedure() -> None:
        counter.set("count", 98)

    async with context.transaction(counter.id) as tx:
        tx.stage(lambda: counter.set("count", 99))
        client = Etcd([alpha_double.servers.etcd.url])
        await client.revoke(tx.held.lease)
        await client.aclose()
        await tx.run_exclusively(procedure)


async def _increment_while_the_lease_ends(
    alpha_double: AlphaDouble, twins: tuple[Context, Context], counter: CoMap
) -> None:
    slow, quick = twins
    async with slow.transaction(counter.id) as tx:
        tx.stage(lambda: counter.set("count", 99))
        client = Etcd([alpha_double.servers.etcd.url])
        await client.revoke(tx.held.lease)
        await client.aclose()
        async with quick.transaction(counter.id) as other:
            count = await other.load(counter.id)
            other.stage(lambda: count.set("count", 1))
        await slow.node.catch_up()
