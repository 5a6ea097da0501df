"""Replicas in Python and TypeScript call each other, take the same locks, and read each other's data.

Each program runs once in each language, so that the four pairs of caller and callee take the same steps at a time. The
cluster has an identity repository of its own; the programs name the contract as the examples do.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from support.eventually import eventually
from support.languages import GREETINGS, LANGUAGES, Recorder, running
from support.ports import free_port
from support.replicas import AlphaDouble, run_alpha_double
from typing_extensions import TypedDict

from reside.jazz import EVERYONE, Node
from reside.jazz.typed import CoMapModel, FeedOf, File, ListOf
from reside.locks import LockService, LockTimeout
from reside.locks.etcd import encode
from reside.model.endpoints import rpc_path
from reside.model.errors import NotReady
from reside.model.permissions import Grant, PermissionRef
from reside.replica.client import call_method
from reside.replica.profile import load_profile

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.languages import Program
    from support.replicas import Identity, Servers
    from support.typescript import TypeScript

    from reside.jazz import Credentials

pytestmark = pytest.mark.anyio

REPOSITORY = "registry.example:5443/acme/reside"
GREETING = f"{REPOSITORY}/contracts/greeting.v1"
PROBING = "registry.example/contracts/probing.v1"
GRANTED, REVOKED = Grant(granted=True), Grant(granted=False)
PRINTED = datetime(2026, 11, 25, 10, 15, 59, 510_000, UTC)
REVOKED_WITHIN_S = 1.0


class Author(CoMapModel):
    """A reference of a shelf."""

    name: str


class Event(TypedDict):
    """An item of a shelf's feed."""

    what: str


class Shelf(CoMapModel):
    """The data of `typescript/probe`."""

    title: str
    printed: datetime
    author: Author
    tags: ListOf[str]
    events: FeedOf[Event]
    cover: File


@dataclass(eq=False)
class World:
    """A greeter and a probe in each language, by language; each greeter has a recording proxy before it."""

    alpha: AlphaDouble
    typescript: TypeScript
    client: Credentials
    http: httpx2.AsyncClient
    identities: dict[tuple[str, str], Identity]
    recorders: dict[str, Recorder] = field(default_factory=dict)
    ports: dict[tuple[str, str], int] = field(default_factory=dict)
    programs: dict[tuple[str, str], Program] = field(default_factory=dict)
    _stacks: dict[tuple[str, str], AsyncExitStack] = field(default_factory=dict)

    async def start(self, name: str, language: str) -> None:
        """Start a program."""
        endpoint = self.recorders[language].url if name == "greeter" else None
        stack = self._stacks[name, language] = AsyncExitStack()
        identity, port = self.identities[name, language], self.ports[name, language]
        process = running(self.typescript, language, name, identity, port, endpoint=endpoint, repository=REPOSITORY)
        self.programs[name, language] = await stack.enter_async_context(process)

    async def stop(self, name: str, language: str) -> None:
        """Stop a program as Kubernetes does."""
        await self._stacks.pop((name, language)).aclose()

    async def tell(self, language: str, method: str, /, **body: Any) -> Any:
        """Call a method of a probe."""
        probe = self.identities["probe", language]
        return await call_method(
            self.http,
            self.client,
            endpoint=f"http://127.0.0.1:{self.ports['probe', language]}",
            receiver=probe.credentials.account_id,
            path=rpc_path(probe.settings.replica_name, PROBING, method),
            body=body,
        )


@dataclass(frozen=True)
class Pair:
    """A caller and a callee."""

    world: World
    caller: str
    callee: str

    async def call(self, method: str = "greet", **body: Any) -> dict[str, Any]:
        """Let the caller call the callee; return the code, and the answer or the message."""
        request = {"peer": f"greeter-{self.callee}", "method": method, "body": body or {"name": "Ada"}}
        result: dict[str, Any] = await self.world.tell(self.caller, "call", **request)
        return result

    async def expect(self, grant: Grant) -> None:
        """Write what is expected of the caller's permission."""
        await self.world.alpha.expect(self._greeter, self._ref, grant)

    async def until_current(self, grant: Grant) -> None:
        """Wait until the callee has carried out what is expected."""
        await self.world.alpha.until_current(self._greeter, self._ref, grant)

    async def is_greeted(self) -> None:
        """Wait until the callee has carried out the grant, and is called with success."""
        await self.until_current(GRANTED)
        result = await self.call()
        assert result["code"] == "ok", (self, result)
        assert result["answer"]["message"] == f"{GREETINGS[self.callee]}, Ada"

    async def replay(self) -> tuple[int, str]:
        """Send the caller's last call again, as somebody who has recorded it."""
        account = self.world.identities["probe", self.caller].credentials.account_id
        return await self.world.recorders[self.callee].replay(account)

    @property
    def _greeter(self) -> Identity:
        return self.world.identities["greeter", self.callee]

    @property
    def _ref(self) -> PermissionRef:
        account = self.world.identities["probe", self.caller].credentials.account_id
        return PermissionRef(account, GREETING, "greet")

    def __repr__(self) -> str:
        return f"{self.caller} calls {self.callee}"


@pytest.fixture(scope="module")
async def world(servers: Servers, typescript: TypeScript) -> AsyncIterator[World]:
    """Yield the four programs."""
    async with AsyncExitStack() as stack:
        alpha = await stack.enter_async_context(run_alpha_double(servers))
        http = await stack.enter_async_context(httpx2.AsyncClient(trust_env=False))
        keys = [(name, language) for name in ("greeter", "probe") for language in LANGUAGES]
        identities = {key: await alpha.identity("-".join(key)) for key in keys}
        made = World(alpha, typescript, await alpha.account("client"), http, identities)
        made.ports = {key: free_port() for key in keys}
        greeters = [identities["greeter", language].credentials.account_id for language in LANGUAGES]
        for language in LANGUAGES:
            identities["probe", language].rcb.set_requirements({"greeting": greeters})
            recorder = Recorder(made.ports["greeter", language])
            made.recorders[language] = await stack.enter_async_context(recorder)
        await alpha.node.flush()
        try:
            await asyncio.gather(*(made.start(*key) for key in keys))
            yield made
        finally:
            await asyncio.gather(*(made.stop(*key) for key in keys))


@pytest.fixture
def pairs(world: World) -> list[Pair]:
    """Return the four pairs."""
    return [Pair(world, caller, callee) for caller in LANGUAGES for callee in LANGUAGES]


async def test_a_call_is_refused_before_its_grant_served_after_it_and_refused_within_a_second_after_its_end(
    pairs: list[Pair],
) -> None:
    async def steps(pair: Pair) -> None:
        refused = await pair.call()
        assert refused["code"] == "not-allowed", (pair, refused)
        assert f"needs the permission greet of {GREETING}" in refused["message"]
        taken = []
        for _ in range(3):  # the machine may be busy at one moment
            await pair.expect(GRANTED)
            await pair.is_greeted()
            await pair.expect(REVOKED)
            began = time.monotonic()
            await eventually(f"{pair} to be refused", pair.call, lambda result: result["code"] == "not-allowed")
            taken.append(time.monotonic() - began)
            await pair.until_current(REVOKED)  # else it undoes the next grant for a moment
            if taken[-1] < REVOKED_WITHIN_S:
                return
        raise AssertionError(f"{pair} was refused only after {taken} s")

    await asyncio.gather(*(steps(pair) for pair in pairs))


async def test_wrong_methods_bodies_and_replayed_calls_are_refused(pairs: list[Pair]) -> None:
    async def steps(pair: Pair) -> None:
        await pair.expect(GRANTED)
        await pair.is_greeted()
        status, text = await pair.replay()
        assert (status, "was used before" in text) == (401, True), (pair, text)
        unknown = await pair.call("sing")
        assert "has no method sing" in unknown["message"], (pair, unknown)
        wrong = await pair.call(name=5)
        assert wrong["code"] == "invalid-input", (pair, wrong)
        assert "name" in wrong["message"]
        assert "5" not in wrong["message"]
        await pair.is_greeted()

    for pair in pairs:  # one after the other, so that the last recorded call is the pair's
        await steps(pair)


async def test_calls_are_served_while_callees_drain_and_after_callees_and_callers_have_started_again(
    world: World, pairs: list[Pair]
) -> None:
    """A call that was recorded before is refused by the next process."""
    for pair in pairs:
        await pair.expect(GRANTED)
    for _ in range(3):  # a process ends after half a second without a call, and the machine may be busy at one moment
        await asyncio.gather(*(pair.is_greeted() for pair in pairs))
        failed = await drained(world, pairs)
        for language in LANGUAGES:
            await world.stop("greeter", language)
            await world.start("greeter", language)
        if not failed:
            break
    assert not failed
    assert [(await pair.replay())[0] for pair in pairs] == [421] * 4
    await asyncio.gather(*(pair.is_greeted() for pair in pairs))
    for language in LANGUAGES:
        await world.stop("probe", language)
        await world.start("probe", language)
    await asyncio.gather(*(pair.is_greeted() for pair in pairs))


async def drained(world: World, pairs: list[Pair]) -> list[Any]:
    """Let all pairs call while the callees begin to stop, until each was served once more; return what failed."""
    served = dict.fromkeys(pairs, 0)
    failed: list[Any] = []
    is_over = asyncio.Event()

    async def call_on(pair: Pair) -> None:
        while not is_over.is_set():
            result = await pair.call()
            if result["code"] != "ok":
                failed.append((pair, result))
                return
            served[pair] += 1

    async def until_served_again() -> None:
        before = dict(served)
        await eventually("calls", lambda: failed or all(served[pair] > before[pair] for pair in pairs))

    async with asyncio.TaskGroup() as calling:
        for pair in pairs:
            calling.create_task(call_on(pair))
        await until_served_again()
        greeters = [world.programs["greeter", language] for language in LANGUAGES]
        for program in greeters:
            program.stop()
        await asyncio.gather(*(program.until(503) for program in greeters))
        await until_served_again()
        is_over.set()  # as if the Service had no endpoint any more
    return failed


@asynccontextmanager
async def held(world: World, title: str) -> AsyncIterator[asyncio.Task[Any]]:
    """Hold a transaction of the TypeScript probe on its data while the block runs."""
    task = asyncio.create_task(world.tell("typescript", "hold", title=title))
    await eventually("the lock", lambda: world.tell("typescript", "isHolding"))
    try:
        yield task
    finally:
        await world.tell("typescript", "release")
        await asyncio.wait({task})


async def shelf_of(world: World, reader: Node) -> Shelf:
    profile = await load_profile(reader, world.identities["probe", "typescript"].credentials.account_id)
    data = str(profile.contracts[PROBING])
    return await Shelf.load(reader, data, resolve=lambda shelf: (shelf.author, shelf.tags, shelf.events, shelf.cover))


@pytest.fixture
def reader(world: World) -> Node:
    """Return a node that reads what everyone may read."""
    return world.alpha.node


async def test_a_lock_that_typescript_holds_excludes_python(world: World, reader: Node) -> None:
    shelf = await shelf_of(world, reader)
    account = world.identities["probe", "typescript"].credentials.account_id
    async with LockService([world.alpha.servers.etcd.url], space=account) as locks:
        async with held(world, "written under the lock") as transaction:
            with pytest.raises(LockTimeout):
                async with locks.lock(f"transaction/{shelf.id}", wait=0.3):
                    pass
        assert transaction.exception() is None
        async with locks.lock(f"transaction/{shelf.id}"):
            await eventually("the title", lambda: shelf.title, lambda title: title == "written under the lock")


async def test_a_transaction_in_typescript_writes_nothing_if_its_lock_has_a_newer_revision(
    world: World, reader: Node
) -> None:
    shelf = await shelf_of(world, reader)
    before = shelf.title
    account = world.identities["probe", "typescript"].credentials.account_id
    etcd = world.alpha.servers.etcd.url
    async with LockService([etcd], space=account) as locks:
        async with held(world, "written without the lock") as transaction:
            key = encode(f"reside/{account}/transaction/{shelf.id}")
            deleted = await world.http.post(f"{etcd}/v3/kv/deleterange", json={"key": key})
            assert deleted.json()["deleted"] == "1"
            async with locks.lock(f"transaction/{shelf.id}"):
                await world.tell("typescript", "release")
                with pytest.raises(NotReady, match="another holder has it"):
                    await transaction
        await world.tell("typescript", "describe", id=shelf.id)
        assert (await shelf_of(world, reader)).title == before


async def test_data_is_read_typed_in_the_other_language(world: World, reader: Node) -> None:
    theirs = await shelf_of(world, reader)
    assert (theirs.printed, theirs.author.name, list(theirs.tags)) == (PRINTED, "Ada", ["a", "b"])
    assert [item.value for item in theirs.events] == [{"what": "made"}]
    assert await theirs.cover.read() == b"a picture"
    group = reader.create_group()
    await group.add_member(EVERYONE, "reader")
    ours = Shelf(
        title="Python",
        printed=PRINTED,
        author=Author(name="Bob"),
        tags=ListOf(["c"]),
        events=FeedOf([{"what": "sent"}]),
        cover=File(b"another picture", mime_type="text/plain", name="cover"),
    ).create(group)
    await reader.flush()
    assert await world.tell("typescript", "describe", id=ours.id) == {
        "title": "Python",
        "printed": "2026-11-25T10:15:59.510Z",
        "author": "Bob",
        "tags": ["c"],
        "events": [{"what": "sent"}],
        "cover": "another picture",
    }
