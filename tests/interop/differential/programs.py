"""Random programs of operations on Jazz values, and their execution, for the differential tests.

A step is a kind and some numbers. They select the actor and the values when the step runs, among those that exist then.
So any list of steps is a program, and hypothesis can shorten one that fails.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from interop.differential.actors import Refused

from reside.jazz import EVERYONE

if TYPE_CHECKING:
    from interop.differential.actors import Actor
    from interop.differential.simulation import Simulation

ROLES = ["admin", "manager", "writer", "reader", "writeOnly"]
ANY_ROLES = [*ROLES, "revoked", "adminInvite", "managerInvite", "writerInvite", "readerInvite", "writeOnlyInvite"]
MAPPINGS = ["extend", "reader", "writer", "manager", "admin"]
DATA: list[Any] = [0, -1, 1.5, 1e21, 2**53, True, None, "", "ü\u2028\U0001f600", [], [1, [2]], {}, {"b": {"a": None}}]
TEXTS = ["a", "xyz", "\u00fc", "e\u0301", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\r\n", " "]
_KEYS = 4
_BETWEEN_CLOCKS_MS = 960
_SKEWS = (-3, -1, 0, 0, 1, 3)
KINDS = {
    "set": 14, "delete": 2, "append": 8, "insert": 8, "remove": 5, "push": 6,
    "insert text": 4, "delete text": 2, "replace": 3, "create invite": 2, "accept invite": 4,
    "add member": 10, "remove member": 4, "add everyone": 2, "remove everyone": 1,
    "extend": 4, "revoke extension": 2, "new group": 2, "new value": 4,
    "forge in group": 8, "forge in value": 4, "offline": 4, "online": 5, "settle": 3,
}  # fmt: skip
"""The kinds of steps, and their frequencies."""
FORGERIES = {
    "forge in group": 40, "forge in value": 10, "set": 3, "add member": 3, "new group": 1, "new value": 1, "extend": 1,
    "offline": 1, "online": 1,
}  # fmt: skip
"""Mostly operations that no honest library would send."""
TIES = {"forge in group": 30, "add member": 4, "forge in value": 4, "set": 2, "new group": 1, "extend": 2, "settle": 2}
"""Mostly changes of groups, for programs in which several accounts make them in the same millisecond."""


@dataclass(frozen=True)
class Step:
    """One step: its kind, its actor, and numbers that select the rest."""

    kind: str
    who: int
    a: int
    b: int
    c: int


@dataclass(frozen=True)
class Program:
    """Steps, and the errors of the actors' clocks (in seconds, one for each actor)."""

    steps: list[Step]
    skews: list[int]
    settled: bool
    """Whether all actors receive each step before the next."""
    tied: bool = False
    """Whether forged changes of groups have few times, which all actors use."""


@dataclass(frozen=True)
class Thing:
    """A value of a program."""

    co_id: str
    kind: str
    name: str


@dataclass
class Run:
    """A running program.

    Attributes:
        things: the values created so far.
        story: what happened, for the message of a failure.
        refused: number of steps that the actor's own library refused.
        invites: groups and the secrets of invites to them.
    """

    simulation: Simulation
    program: Program
    things: list[Thing] = field(default_factory=list)
    story: list[str] = field(default_factory=list)
    refused: int = 0
    invites: list[tuple[str, str]] = field(default_factory=list)
    _hidden: dict[str, str] = field(default_factory=dict)
    _start: int = 0

    @property
    def ids(self) -> list[str]:
        """The ids of all values."""
        return [thing.co_id for thing in self.things]

    async def run(self) -> None:
        """Create a group, a map, a list and a feed, and run the steps; at the end all are online and settled."""
        self._start = self.simulation.now
        skews = dict(zip((actor.name for actor in self.simulation.actors), self.program.skews, strict=True))
        await self.simulation.tick({})
        await self._begin()
        for step in self.program.steps:
            await self.simulation.tick(skews)
            await self._do(step)
            if self.program.settled:
                await self.simulation.settle(self.ids)
        for actor in self.simulation.actors:
            await self._connect(actor)
        for actor in self.simulation.actors:
            for co_id in self.ids:
                await actor.load(co_id)
        await self.simulation.settle(self.ids)

    async def _begin(self) -> None:
        founder = self._actor(len(self.program.steps))
        group = await founder.act("group")
        self._note_new(founder, group, "group")
        for account, actor in enumerate(self.simulation.python):
            if actor.account_id != founder.account_id:
                role = ROLES[(account + len(self.program.steps)) % 3]
                await founder.act("addMember", group=group, member=actor.account_id, role=role)
        self._note_new(founder, await founder.act("map", group=group, init={"k0": "begun"}), "map")
        self._note_new(founder, await founder.act("list", group=group, init=["x", "y", "z"]), "list")
        self._note_new(founder, await founder.act("feed", group=group), "feed")
        self._note_new(founder, await founder.act("text", group=group, init="begin"), "text")
        await founder.flush()
        self._hidden.clear()

    async def _do(self, step: Step) -> None:
        actor = self._actor(step.who)
        if step.kind == "offline":
            await self.simulation.set_online(actor, online=False)
            self._tell(actor, "offline")
        elif step.kind == "online":
            await self._connect(actor)
            self._tell(actor, "online")
        elif step.kind == "settle":
            await self.simulation.settle(self.ids)
            self._tell(actor, "settled")
        else:
            await self._act(actor, step)

    async def _act(self, actor: Actor, step: Step) -> None:
        here = [thing for thing in self.things if await self._get(actor, thing)]
        plan = self._invitation(step, here) if "invite" in step.kind else _plan(step, here, self.simulation)
        if plan is None:
            return
        verb, args = plan
        if "made_at" in args:
            is_tied = self.program.tied and step.kind == "forge in group"
            args["made_at"] = (self._tied_time if is_tied else self._forged_time)(actor, args["made_at"])
        try:
            made = await actor.act(verb, **args)
        except Refused as refusal:
            self.refused += 1
            self._tell(actor, verb, args, f"refused: {refusal}")
            return
        if verb == "createInvite":
            self.invites.append((args["group"], made))
        if verb in ("group", "map", "list", "feed", "text"):
            self._note_new(actor, made, verb)
            if self.simulation.is_online(actor):
                await actor.flush()
                self._hidden.pop(made, None)
        self._tell(actor, verb, args, made)

    def _invitation(self, step: Step, here: list[Thing]) -> tuple[str, dict[str, Any]] | None:
        """Return a step that creates an invite, or accepts one that the actor knows."""
        groups = [thing.co_id for thing in here if thing.kind == "group"]
        if step.kind == "create invite":
            role = ROLES[step.b % len(ROLES)]
            return ("createInvite", {"group": groups[step.a % len(groups)], "role": role}) if groups else None
        known = [(group, secret) for group, secret in self.invites if group in groups]
        if not known:
            return None
        group, secret = known[step.a % len(known)]
        return "acceptInvite", {"group": group, "secret": secret}

    async def _connect(self, actor: Actor) -> None:
        await self.simulation.set_online(actor, online=True)
        await actor.flush()
        self._hidden = {co_id: name for co_id, name in self._hidden.items() if name != actor.name}

    async def _get(self, actor: Actor, thing: Thing) -> bool:
        """Return whether an actor has a value, or can get it."""
        if await actor.has(thing.co_id):
            return True
        if not self.simulation.is_online(actor) or thing.co_id in self._hidden:
            return False
        await actor.load(thing.co_id)
        return True

    def _forged_time(self, actor: Actor, number: int) -> int:
        """Return an unused time on the actor's own slot, between the program's start and a little later than now."""
        seconds = max(1, (self.simulation.now - self._start) // 1000 + 3)
        return self._start + (number % seconds) * 1000 + self.simulation.clock(actor.name) % 1000 + 50 + number % 40

    def _tied_time(self, _: Actor, number: int) -> int:
        """Return one of few times that no actor's clock shows."""
        return self._start + (1 + number % 3) * 1000 + _BETWEEN_CLOCKS_MS

    def _actor(self, number: int) -> Actor:
        actors = self.simulation.actors
        return actors[number % len(actors)]

    def _note_new(self, actor: Actor, co_id: str, kind: str) -> None:
        count = sum(1 for thing in self.things if thing.kind == kind)
        self.things.append(Thing(co_id, kind, f"{kind}{count}"))
        self._hidden[co_id] = actor.name

    def _tell(self, actor: Actor, verb: str, args: Any = "", result: Any = "") -> None:
        text = f"{self.simulation.clock(actor.name) - self._start:6} {actor.name}: {verb} {args or ''} {result or ''}"
        for thing in self.things:
            text = text.replace(thing.co_id, thing.name)
        for someone in self.simulation.python:
            text = text.replace(someone.account_id, someone.name.removeprefix("py-"))
        self.story.append(text)


def _plan(step: Step, here: list[Thing], simulation: Simulation) -> tuple[str, dict[str, Any]] | None:  # noqa: C901, PLR0911, PLR0912 - one branch a kind
    """Return the verb and arguments of a step, given the values that its actor has; None if there is nothing to do."""

    def one(kind: str, number: int) -> str | None:
        fitting = [thing.co_id for thing in here if thing.kind == kind]
        return fitting[number % len(fitting)] if fitting else None

    kind, a, b, c = step.kind, step.a, step.b, step.c
    value = DATA[c % len(DATA)]
    group = one("group", a)
    member = simulation.python[b % len(simulation.python)].account_id
    if kind == "new group":
        return "group", {}
    if kind in ("set", "delete"):
        target, key = one("map", a), f"k{b % _KEYS}"
        if target is None:
            return None
        return kind, {"co_id": target, "key": key} | ({"value": value} if kind == "set" else {})
    if kind in ("append", "insert", "remove", "replace"):
        target = one("list", a)
        if target is None:
            return None
        more: dict[str, Any] = {"append": {"values": [f"{b}", value][: 1 + b % 2]}, "remove": {"at": b}}.get(
            kind, {"at": b, "value": f"{c}"}
        )
        return kind, {"co_id": target} | more
    if kind in ("insert text", "delete text"):
        target = one("text", a)
        if target is None:
            return None
        if kind == "insert text":
            return "insertText", {"co_id": target, "at": b, "text": TEXTS[c % len(TEXTS)]}
        return "deleteText", {"co_id": target, "at": b, "count": c % 4 + 1}
    if kind == "push":
        target = one("feed", a)
        return None if target is None else ("push", {"co_id": target, "value": value})
    if group is None:
        return None
    if kind == "new value":
        verb = ("map", "list", "feed", "text")[b % 4]
        content = {"map": {"k0": value}, "list": [value, "n"], "text": TEXTS[c % len(TEXTS)]}
        init: dict[str, Any] = {"init": content[verb]} if verb in content else {}
        return verb, {"group": group} | init
    if kind == "add member":
        return "addMember", {"group": group, "member": member, "role": ROLES[c % len(ROLES)]}
    if kind == "remove member":
        return "removeMember", {"group": group, "member": member}
    if kind == "add everyone":
        return "addMember", {"group": group, "member": EVERYONE, "role": ("reader", "writer", "writeOnly")[c % 3]}
    if kind == "remove everyone":
        return "removeMember", {"group": group, "member": EVERYONE}
    # A group extends older ones only: JavaScript's stack overflows for groups that extend each other.
    groups = [thing.co_id for thing in here if thing.kind == "group"]
    older = groups[: groups.index(group)]
    parent = older[b % len(older)] if older else None
    if kind in ("extend", "revoke extension"):
        if parent is None:
            return None
        if kind == "extend":
            return "extend", {"group": group, "parent": parent, "role": MAPPINGS[c % len(MAPPINGS)]}
        return "revokeExtension", {"group": group, "parent": parent}
    if kind == "forge in group":
        changes = [_forged_change(simulation, parent, b, c)]
        return "transact", {"co_id": group, "changes": changes, "privacy": "trusting", "made_at": a * 31 + b * 7 + c}
    targets = [thing for thing in here if thing.kind in ("map", "list")]
    if not targets:
        return None
    target = targets[a % len(targets)]
    # JavaScript can't load a list with an operation that it does not know.
    change = {"key": f"k{b % _KEYS}", "op": "set"} if target.kind == "map" else {"op": "app", "after": "start"}
    args = {"co_id": target.co_id, "changes": [change | {"value": value}], "made_at": a * 31 + b * 7 + c}
    return "transact", args | {"privacy": "trusting" if c % 2 else "private"}


def _forged_change(simulation: Simulation, other: str | None, b: int, c: int) -> dict[str, Any]:
    """Return a change of a group that is sent unchecked.

    Keys are revealed under later ones only: cojson looks for a key that is revealed under itself, directly or in a
    circle, until its stack is full, and nothing is left to compare with.
    """
    member = simulation.members[b % len(simulation.members)]
    earlier, later = ((0, 1), (0, 2), (1, 2))[b % 3]
    choices: list[tuple[str, Any]] = [
        *((member, role) for role in ANY_ROLES),
        ("readKey", "key_zJunk"),
        ("groupSealer", "junk"),
        (f"key_z{b % 3}_for_{member}", "sealed_UJunk"),
        (f"key_z{earlier}_for_key_z{later}", "encrypted_UJunk"),
        (f"writeKeyFor_{member}", f"key_z{b % 3}"),
        ("profile", "co_zJunk"),
        ("anything", "admin"),
        ("child_co_zX", "extend"),
        *((f"parent_{other}", mapping) for mapping in [*MAPPINGS, "writeOnly", "revoked"] if other is not None),
    ]
    key, value = choices[c % len(choices)]
    return {"op": "set", "key": key, "value": value}


def programs(
    weights: dict[str, int] = KINDS, least: int = 10, most: int = 30, *, tied: bool = False
) -> st.SearchStrategy[Program]:
    """Return a strategy for programs of so many steps."""
    kinds = [kind for kind, weight in weights.items() for _ in range(weight)]
    number = st.integers(0, 999)
    step = st.builds(Step, st.sampled_from(kinds), number, number, number, number)
    return st.builds(
        Program,
        st.lists(step, min_size=least, max_size=most),
        st.lists(st.sampled_from(_SKEWS), min_size=6, max_size=6),
        st.booleans(),
        st.just(tied),
    )
