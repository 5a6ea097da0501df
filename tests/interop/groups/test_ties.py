"""Changes of a group in the same millisecond, by several accounts: both clients reach the same verdicts.

A server stores the sessions of a value in their order of arrival, so all JavaScript readers agree where every change
was made after those that it needs had arrived.
"""

from dataclasses import dataclass
from typing import Any

import pytest
from interop.javascript import JavaScript
from support.jazz_nodes import Nodes
from support.jazz_server import JazzServer

from reside.jazz import Group, now_ms

pytestmark = pytest.mark.anyio


@dataclass
class Writers:
    """JavaScript accounts whose clocks stand still.

    Attributes:
        ids: the account ids by actor; the order of the actors is the reverse of that of the ids, so that a reader who
            orders by session would take each change before the one that it needs.
    """

    js: JavaScript
    url: str
    ids: dict[str, str]

    @classmethod
    async def make(cls, js: JavaScript, url: str) -> "Writers":
        """Create three accounts."""
        made = {name: (await js("create", actor=name, url=url, name=name))["accountID"] for name in "abc"}
        found = dict(sorted(made.items(), key=lambda pair: pair[1], reverse=True))
        for name in found:
            await js("flush", actor=name)
        return cls(js, url, found)

    async def act(self, actor: str, verb: str, **args: Any) -> Any:
        """Carry out an operation, and wait until the server has it."""
        answer = await self.js("attempt", actor=actor, verb=verb, args=args)
        assert "result" in answer, answer
        await self.js("flush", actor=actor)
        return answer["result"]

    async def waits(self, actor: str, group: str, member: str, role: str | None) -> None:
        """Wait until an actor sees the role of another."""
        for _ in range(500):
            if await self.js("roleOf", actor=actor, group=group, account=self.ids[member]) == role:
                return
        raise AssertionError(f"{actor} does not see that {member} is {role}")

    async def view(self, actor: str, group: str, at: int) -> Any:
        """Return the roles at a time and the verdicts of a group."""
        members = list(self.ids.values())
        (found,) = await self.js("views", actor=actor, ids=[group], members=members, times=[at])
        return found["content"], {tuple(verdict) for verdict in found["verdicts"]}


def _view(group: Group, writers: Writers, at: int) -> Any:
    roles = [[group.role_of(member, time) for member in writers.ids.values()] for time in (None, at)]
    judged = {
        (item.transaction.session, item.transaction.index, item.refusal is None) for item in group._state.verdicts
    }
    return roles, judged


async def _all_see(nodes: Nodes, writers: Writers, group: Group, at: int, roles: list[Any]) -> None:
    """Check the roles that JavaScript and Python readers see, both those that were there and those that come later."""
    js = writers.js
    await js("create", actor="late", url=writers.url, name="late")
    expected = await writers.view("late", group.id, at)
    assert expected[0] == [roles, roles]
    for actor in writers.ids:
        await js("until", actor=actor, id=group.id, count=len(expected[1]))
        assert await writers.view(actor, group.id, at) == expected
    node = await nodes("late")
    assert _view(await node.load_group(group.id), writers, at) == expected
    async with group.watch() as changes:
        async for state in changes:
            if len(state._state.verdicts) == len(expected[1]):
                break
    assert _view(group, writers, at) == expected


async def test_a_role_given_and_used_in_one_millisecond(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    writers = await Writers.make(js, jazz.url)
    first, second, third = writers.ids
    at = now_ms()
    await js("clocks", clocks=dict.fromkeys(writers.ids, at))
    group_id = await writers.act(first, "group")
    reader = await (await nodes("reader")).load_group(group_id)
    await writers.act(first, "addMember", group=group_id, member=writers.ids[second], role="admin")
    await writers.waits(second, group_id, second, "admin")
    await writers.act(second, "addMember", group=group_id, member=writers.ids[third], role="manager")
    await writers.waits(third, group_id, third, "manager")
    await writers.act(third, "addMember", group=group_id, member="everyone", role="reader")
    await _all_see(nodes, writers, reader, at, ["admin", "admin", "manager"])
    assert reader.members()["everyone"] == "reader"


async def test_grants_of_two_admins_in_one_millisecond(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    writers = await Writers.make(js, jazz.url)
    first, second, third = writers.ids
    at = now_ms()
    await js("clocks", clocks=dict.fromkeys(writers.ids, at - 1))
    group_id = await writers.act(first, "group")
    reader = await (await nodes("reader")).load_group(group_id)
    await writers.act(first, "addMember", group=group_id, member=writers.ids[second], role="admin")
    await writers.waits(second, group_id, second, "admin")
    await js("clocks", clocks=dict.fromkeys(writers.ids, at))
    await writers.act(second, "addMember", group=group_id, member=writers.ids[third], role="writer")
    await writers.act(first, "addMember", group=group_id, member="everyone", role="writer")
    await _all_see(nodes, writers, reader, at, ["admin", "admin", "writer"])


async def test_a_member_acts_in_the_millisecond_before_it_is_removed(
    jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    writers = await Writers.make(js, jazz.url)
    first, second, third = writers.ids
    at = now_ms()
    await js("clocks", clocks=dict.fromkeys(writers.ids, at))
    group_id = await writers.act(first, "group")
    reader = await (await nodes("reader")).load_group(group_id)
    await writers.act(first, "addMember", group=group_id, member=writers.ids[second], role="manager")
    await writers.waits(second, group_id, second, "manager")
    await writers.act(second, "addMember", group=group_id, member=writers.ids[third], role="writer")
    await writers.waits(first, group_id, third, "writer")
    await writers.act(first, "removeMember", group=group_id, member=writers.ids[second])
    live = await writers.view(first, group_id, at)
    assert live[0][0] == ["admin", None, "writer"]
    async with reader.watch() as changes:
        async for state in changes:
            if len(state._state.verdicts) == len(live[1]):
                break
    assert _view(reader, writers, at) == live
