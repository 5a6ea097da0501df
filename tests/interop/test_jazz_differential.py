"""Random programs of role changes: both clients judge every transaction of a group and of its values alike.

What the actors write is unchecked, at any time of their choice, in any order: much of it is forbidden.
"""

import random
from typing import Any

import pytest
from support.jazz import JazzServer
from support.jazz_js import JavaScript
from support.jazz_nodes import Nodes, content, until

from reside.jazz import now_ms

pytestmark = pytest.mark.anyio

ACTORS = ["a", "b", "c", "d"]
ROLES = ["admin", "manager", "writer", "reader", "writeOnly", "revoked", "writerInvite", "adminInvite", "managerInvite"]
TRANSACTIONS = 60
SPAN_MS = 100_000


class _Program:
    """One random program; replay a failure by its seed."""

    def __init__(self, seed: int, js: JavaScript) -> None:
        self.choose = random.Random(seed)  # noqa: S311 - a test's program, to be replayed
        self.js = js
        self.accounts: dict[str, str] = {}
        start = now_ms() + 1000
        self._times = [start + time for time in self.choose.sample(range(SPAN_MS), TRANSACTIONS * 3)]

    async def begin(self, url: str) -> None:
        for actor in ACTORS:
            self.accounts[actor] = (await self.js("create", actor=actor, url=url, name=actor))["accountID"]
            await self.js("flush", actor=actor)

    def member(self) -> str:
        return self.choose.choice([*self.accounts.values(), *self.accounts.values(), "everyone"])

    def change(self, parents: list[str]) -> dict[str, Any]:
        kind = self.choose.random()
        member = self.member()
        if kind < 0.6:
            key, value = member, self.choose.choice(ROLES)
        elif kind < 0.68:
            key, value = self.choose.choice(["readKey", "groupSealer"]), "key_zJunk"
        elif kind < 0.76:
            key, value = f"key_z{self.choose.randint(1, 3)}_for_{member}", "sealed_UJunk"
        elif kind < 0.84:
            key, value = f"writeKeyFor_{member}", f"key_z{self.choose.randint(1, 3)}"
        elif kind < 0.94:
            key = f"parent_{self.choose.choice(parents)}"
            value = self.choose.choice(["extend", "reader", "writer", "admin", "revoked"])
        else:
            key, value = self.choose.choice(["child_co_zX", "anything", "key_z1_for_key_z2"]), "extend"
        return {"op": "del" if self.choose.random() < 0.03 else "set", "key": key, "value": value}

    async def transact(self, co_id: str, changes: list[Any], actor: str | None = None) -> None:
        who = actor or self.choose.choice(ACTORS)
        made_at = self._times.pop()
        await self.js("transact", actor=who, id=co_id, changes=changes, privacy="trusting", madeAt=made_at)


@pytest.mark.parametrize("seed", range(6))
async def test_both_judge_every_transaction_alike(seed: int, jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    program = _Program(seed, js)
    await program.begin(jazz.url)
    parents = []
    for actor in ("b", "c"):
        parent = await js("group", actor=actor)
        await js("addMember", actor=actor, group=parent, account=program.accounts["d"], role="writer")
        parents.append(parent)
        await js("flush", actor=actor)
    group = await js("group", actor="a")
    value = await js("map", actor="a", group=group, init={})
    for actor, role in (("b", "admin"), ("c", "manager")):
        await js("addMember", actor="a", group=group, account=program.accounts[actor], role=role)
    await js("flush", actor="a")
    for actor in ACTORS:  # JavaScript wants to know a parent before it is named
        for parent in parents:
            await js("load", actor=actor, id=parent)
    for number in range(TRANSACTIONS):
        # The right ones are made more often, or else soon nobody may do anything.
        actor = "a" if program.choose.random() < 0.4 else None
        changes = [program.change(parents) for _ in range(2 if program.choose.random() < 0.05 else 1)]
        await program.transact(group, changes, actor)
        await program.transact(value, [{"op": "set", "key": f"k{number % 7}", "value": number}])
    for actor in ACTORS:
        await js("flush", actor=actor)

    await js("create", actor="judge", url=jazz.url, name="judge")
    python = await nodes("python")
    mine = await python.load_group(group)
    expected = {tuple(verdict) for verdict in await js("verdicts", actor="judge", id=group)}
    actual = {(item.transaction.session, item.transaction.index, item.refusal is None) for item in mine.state.verdicts}
    assert actual == expected
    assert 5 < sum(valid for _, _, valid in actual) < len(actual) - 5
    for member in (*program.accounts.values(), "everyone"):
        assert await js("roleOf", actor="judge", group=group, account=member) == mine.role_of(member)

    my_value = await python.load_map(value)
    expected = {tuple(verdict) for verdict in await js("verdicts", actor="judge", id=value)}
    await until(my_value, lambda value: len(value.refusals()) == len(expected))
    judged = {(session, index, why is None or "can't be read" in why) for session, index, why in my_value.refusals()}
    assert judged == expected  # nobody revealed a key to us, which is no question of permission
    assert content(my_value) == await js("load", actor="judge", id=value)
