"""A policy decides about a value that was evicted as if it had stayed in memory."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from support.jazz_controlled_nodes import DetachedNode, exchange, exchange_during, registered
from support.jazz_nodes import content

from reside.jazz import CoMap, Group, WritePolicy
from reside.jazz.removals import UNIQUE_NAME

pytestmark = pytest.mark.anyio

CAREFUL = WritePolicy(refuse_after_removal=True, max_ahead_ms=60_000, remember=True)


@dataclass
class Setup:
    """A group of `writer` in which `member` may write, and a node with a policy that has evicted one of its maps.

    Attributes:
        hub: acts as the server.
        group: the group, as its admin sees it.
        value: the map, as its admin sees it.
        theirs: the map, as the member sees it.
        member: the member's node.
        careful: the node with the policy.
        before: a time at which the member was a writer, ms since the epoch.
    """

    hub: DetachedNode
    group: Group
    value: CoMap
    theirs: CoMap
    member: DetachedNode
    careful: DetachedNode
    before: int

    async def remove_member(self, admin: DetachedNode) -> None:
        """Remove the member from the group, and let the careful node see it."""
        await self.group.remove_member(self.member.account_id)
        await exchange(self.hub, admin)
        self.careful.cut()
        self.careful.connect()
        await exchange(self.hub, self.careful)

    async def load(self) -> CoMap:
        """Load the map again on the careful node."""
        return await exchange_during(self.hub, self.careful, self.careful.load_map(self.value.id))


@pytest.fixture
async def setup(hub: DetachedNode, writer: DetachedNode) -> Setup:
    """Return a setup in which the member has written once."""
    member, careful = await registered(hub, "member"), DetachedNode(policy=CAREFUL)
    await exchange_during(hub, careful, careful.register("careful"))
    group = writer.create_group()
    await exchange_during(hub, writer, group.add_member(member.account_id, "writer"))
    await exchange_during(hub, writer, group.add_member(careful.account_id, "reader"))
    value = group.create_map({"x": 1})
    await exchange(hub, writer)
    theirs = await exchange_during(hub, member, member.load_map(value.id))
    theirs.set("honest", value=True)
    await exchange(hub, member)
    made = Setup(hub, group, value, theirs, member, careful, writer.now_ms())
    assert content(await made.load()) == {"x": 1, "honest": True}
    await asyncio.sleep(0.002)  # so that a removal has a later date
    _evict(careful, value.id)
    return made


def _evict(node: DetachedNode, co_id: str) -> None:
    node._host.objects.release()
    node._runtime._evict()
    assert co_id not in node._host.store.cores


def _back_dated(setup: Setup, key: str) -> None:
    changes = [{"op": "set", "key": key, "value": True}]
    setup.member.transact(setup.value.id, changes, private=True, made_at=setup.before)


async def test_what_was_seen_before_the_eviction_counts_after_a_removal(setup: Setup, writer: DetachedNode) -> None:
    await setup.remove_member(writer)
    assert content(await setup.load()) == {"x": 1, "honest": True}


async def test_a_back_dated_write_after_a_removal_is_refused(setup: Setup, writer: DetachedNode) -> None:
    await setup.remove_member(writer)
    _back_dated(setup, "late")
    await exchange(setup.hub, setup.member)
    again = await setup.load()
    assert content(again) == {"x": 1, "honest": True}
    del again
    _evict(setup.careful, setup.value.id)
    assert content(await setup.load()) == {"x": 1, "honest": True}, "the verdict is kept, too"


async def test_a_removal_is_recorded_for_an_evicted_value(setup: Setup, writer: DetachedNode) -> None:
    await setup.remove_member(writer)
    careful = setup.careful
    notes = await exchange_during(setup.hub, careful, careful.find_unique_map(careful.account_id, UNIQUE_NAME))
    assert notes is not None
    (seen,) = (note["seen"] for note in notes.as_dict()[setup.value.id].values())
    assert list(seen.values()) == [1]


async def test_what_a_present_member_has_written_since_the_eviction_counts(setup: Setup) -> None:
    setup.theirs.set("later", value=True)
    await exchange(setup.hub, setup.member)
    assert content(await setup.load()) == {"x": 1, "honest": True, "later": True}
    assert setup.value.id not in setup.careful._runtime.guard._evicted  # type: ignore[union-attr]
