"""Accounts with a node in Python and one in JavaScript each, on one server, with clocks that the test sets.

Times of a simulation never tie between two actors by accident: each actor's clock has its own 100 ms within a second.
JavaScript orders ties between sessions by arrival, so two readers may differ there; `ties` finds where they can't.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from interop.differential.actors import JavaScriptActor, PythonActor
from support.eventually import eventually
from support.jazz_controlled_nodes import SwitchedNode

from reside.jazz import EVERYONE, Credentials, now_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from interop.differential.actors import Actor, View
    from interop.javascript import JavaScript
    from support.jazz_server import JazzServer

ACCOUNTS = 3
_SLOT_MS = 100
_TICK_MS = 1000
_SETTLED_WITHIN_S = 60.0
_HEALED_WITHIN_S = 30.0


class Simulation:
    """The actors and their clocks.

    Attributes:
        python: one actor for each account.
        javascript: one actor for each of the same accounts.
        now: ms since the epoch; each actor's clock is near it.
    """

    def __init__(self, server: JazzServer, js: JavaScript) -> None:
        self.server = server
        self.js = js
        self.python: list[PythonActor] = []
        self.javascript: list[JavaScriptActor] = []
        self.now = (now_ms() // _TICK_MS + 60) * _TICK_MS
        self.skews: dict[str, int] = {}
        self._online: set[str] = set()
        self._credentials: list[Credentials] = []

    async def __aenter__(self) -> Self:
        for number in range(ACCOUNTS):
            await self._join(number, "abc"[number])
        for actor in self.actors:
            for other in self.python:
                await actor.load(other.account_id)
        await self.tick({})
        return self

    async def __aexit__(self, *error: object) -> None:
        for mine in self.python:
            await mine.node.leave()
        for theirs in self.javascript:
            await self.js("leave", actor=theirs.name)

    @property
    def actors(self) -> list[Actor]:
        """All actors; the index in this list is the position of the actor's clock within a second."""
        return [*self.python, *self.javascript]

    @property
    def members(self) -> list[str]:
        """The accounts and agents that can have a role."""
        return [*(actor.account_id for actor in self.python), EVERYONE]

    def is_online(self, actor: Actor) -> bool:
        """Return whether an actor has a connection."""
        return actor.name in self._online

    async def set_online(self, actor: Actor, *, online: bool) -> None:
        """Connect an actor, or close its connection."""
        if online != self.is_online(actor):
            await actor.set_online(online=online)
            (self._online.add if online else self._online.discard)(actor.name)

    async def tick(self, skews: dict[str, int]) -> None:
        """Advance all clocks by a second.

        Args:
            skews: the errors of actors' clocks in seconds.
        """
        self.now += _TICK_MS
        self.skews = skews
        await self.js("clocks", clocks={actor.name: self.clock(actor.name) for actor in self.javascript})

    def clock(self, name: str) -> int:
        """Return an actor's time."""
        place = next((place for place, actor in enumerate(self.actors) if actor.name == name), len(self.actors))
        return self.now + self.skews.get(name, 0) * _TICK_MS + place * _SLOT_MS

    async def settle(self, ids: Iterable[str]) -> None:
        """Wait until all actors that are online have the same transactions of the values that they have.

        Raises:
            AssertionError: they did not converge in time.
        """
        wanted = list(ids)
        await eventually(
            "equal logs of all nodes",
            lambda: self._differences(wanted),
            lambda different: not different,
            within=_SETTLED_WITHIN_S,
            show=str,
        )

    async def counts(self, ids: Sequence[str]) -> dict[str, list[dict[str, int]]]:
        """Return what each connected actor has of some values: transactions by session."""
        online = [actor.name for actor in self.javascript if self.is_online(actor)]
        found: dict[str, list[dict[str, int]]] = await self.js("counts", actors=online, ids=ids)
        for actor in self.python:
            if self.is_online(actor):
                found[actor.name] = [actor.counts(co_id) for co_id in ids]
        return found

    async def fresh(self, account: int, *, javascript: bool) -> Actor:
        """Return another node of an account, which loads everything again; close it with `dismiss`."""
        credentials = self._credentials[account]
        if javascript:
            login = {"accountID": credentials.account_id, "accountSecret": credentials.agent_secret}
            await self.js("login", actor="fresh", url=self.server.url, **login)
            return JavaScriptActor("fresh", self.js, credentials.account_id)
        node = SwitchedNode(self.server.url, credentials, clock=lambda: self.clock("fresh"))
        await node.online()
        await node.login()
        return PythonActor("fresh", node)

    async def dismiss(self, actor: Actor) -> None:
        """Close a fresh node."""
        if isinstance(actor, PythonActor):
            await actor.node.leave()
        else:
            await self.js("leave", actor=actor.name)

    async def _join(self, number: int, name: str) -> None:
        credentials = Credentials.generate()
        self._credentials.append(credentials)
        py_name, js_name = f"py-{name}", f"js-{name}"
        node = SwitchedNode(self.server.url, credentials, clock=lambda: self.clock(py_name))
        self.python.append(PythonActor(py_name, node))
        await node.online()
        await node.register(name)
        await node.flush()
        login = {"accountID": credentials.account_id, "accountSecret": credentials.agent_secret}
        await self.js("login", actor=js_name, url=self.server.url, **login)
        self.javascript.append(JavaScriptActor(js_name, self.js, str(credentials.account_id)))
        self._online |= {py_name, js_name}

    async def _differences(self, ids: Sequence[str]) -> dict[str, Any]:
        found = await self.counts(ids)
        different: dict[str, Any] = {}
        for place, co_id in enumerate(ids):
            held = {name: counts[place] for name, counts in found.items() if counts[place]}
            union: dict[str, int] = {}
            for counts in held.values():
                for session, count in counts.items():
                    union[session] = max(count, union.get(session, 0))
            if any(counts != union for counts in held.values()):
                different[co_id] = held
        return different


async def compare(simulation: Simulation, ids: list[str], *, fresh: int) -> None:
    """Check that all accounts see the same in Python and in JavaScript.

    Args:
        simulation: settled, with all actors online.
        ids: the values to compare.
        fresh: number of the account that is also compared with a fresh Python node.

    Raises:
        AssertionError: they see different things.
    """
    times = _moments(simulation, ids)
    for number, (mine, theirs) in enumerate(zip(simulation.python, simulation.javascript, strict=True)):
        looking: list[Actor] = [mine]
        if number == fresh % ACCOUNTS:
            looking.append(await simulation.fresh(number, javascript=False))
        expected = await theirs.views(ids, simulation.members, times)
        for actor in looking:
            actual = await actor.views(ids, simulation.members, times)
            if actual != expected:
                # A JavaScript node does not validate values again after its own writes to a group; a fresh one does.
                other = await simulation.fresh(number, javascript=True)
                await _same_views(actor, other, ids, simulation.members, times)
                await simulation.dismiss(other)
        for actor in looking[1:]:
            await simulation.dismiss(actor)


async def _same_views(mine: Actor, theirs: Actor, ids: list[str], members: list[str], times: list[int]) -> None:
    """Wait until two actors see the same.

    A fresh JavaScript node of an admin repairs groups, so what it wrote has to arrive first.
    """

    async def differences() -> list[str]:
        expected = await theirs.views(ids, members, times)
        actual = await mine.views(ids, members, times)
        pairs = zip(ids, actual, expected, strict=True)
        return [_difference(co_id, one, other) for co_id, one, other in pairs if one != other]

    await eventually(
        f"that {mine.name} and JavaScript see the same",
        differences,
        lambda found: not found,
        within=_HEALED_WITHIN_S,
        show="\n".join,
    )


def _moments(simulation: Simulation, ids: list[str]) -> list[int]:
    """Return some times at which roles may have changed."""
    store = simulation.python[0].node._host.store
    times = sorted({item.made_at for co_id in ids for item in store.core(co_id).transactions})
    return times[:: max(1, len(times) // 5)]


def _difference(co_id: str, mine: View, theirs: View) -> str:
    found = [f"about {co_id}"]
    if mine["content"] != theirs["content"]:
        found += [f"Python: {mine['content']}", f"JavaScript: {theirs['content']}"]
    found += [f"Python only: {verdict}" for verdict in sorted(mine["verdicts"] - theirs["verdicts"])]
    found += [f"JavaScript only: {verdict}" for verdict in sorted(theirs["verdicts"] - mine["verdicts"])]
    return "\n".join(found)
