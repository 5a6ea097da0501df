"""Bring the changes of a replica's folder into a cluster, one after the other: build, load, approve, follow.

A change that comes while an earlier one is on its way takes its place: the load request of the earlier one is rejected,
or if its version exists already, the next version replaces it. So whenever this is interrupted, no load request of it
stays open that its account may decide.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from reside.cli import loading
from reside.cli.replicas import ReplicaView
from reside.jazz import JazzError
from reside.model.alpha_contract import REJECT_LOAD_REQUEST
from reside.model.entities import LoadRequest, LoadRequestSpec
from reside.model.errors import InvalidInput, LoadRefused, NotAllowed, ResideError
from reside.model.identities import resolved

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
    from typing import Any, TypeVar

    from reside.build.source_state import SourceState
    from reside.cli.replicas import Row
    from reside.cli.session import Session
    from reside.jazz import CoMap

    Value = TypeVar("Value")

WITHDRAW_S: Final = 20.0
"""Seconds for the rejection of a load request that was interrupted; it can't be rejected before it is validated."""


@dataclass
class Times:
    """How long each step of a change took.

    Attributes:
        began: when the change was noticed, as `time.monotonic` has it.
        steps: step → seconds.
    """

    began: float = field(default_factory=time.monotonic)
    steps: dict[str, float] = field(default_factory=dict)

    def done(self, step: str) -> None:
        """Note that a step is done: it took the time since the one before."""
        self.steps[step] = time.monotonic() - self.began - sum(self.steps.values())

    def __str__(self) -> str:
        each = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in self.steps.items())
        return f"{sum(self.steps.values()):.1f} s ({each})"


@dataclass(frozen=True)
class Arrival:
    """A change that the cluster runs.

    Attributes:
        name: name of the instance.
        version: its version.
        status: `running` or `completed`.
        times: how long each step took; None if the cluster ran these files already.
    """

    name: str
    version: int
    status: str
    times: Times | None = None

    def __str__(self) -> str:
        how = "with the files as they are now" if self.times is None else f"after {self.times}"
        return f"{self.name} version {self.version} is {self.status}{',' if self.times is None else ''} {how}"


@dataclass(frozen=True)
class Means:
    """How a change is brought into the cluster.

    Attributes:
        build: builds and pushes what a folder holds; returns the image by digest.
        decide: shows a load request, and returns only if it is to be approved.
        say: tells what happens.
        arrive: tells that the cluster runs a change.
    """

    build: Callable[[SourceState], Awaitable[str]]
    decide: Callable[[LoadRequest], Awaitable[None]]
    say: Callable[[str], None]
    arrive: Callable[[Arrival], None]


class Development:
    """The versions of one replica that are loaded from one folder.

    Args:
        session: a session with the cluster.
        means: how a change is brought into it.
        name: name of the instance; None: that in the manifest, or the only instance of this identity.

    Attributes:
        running: sentence about what the cluster runs of this folder; None if nothing.
        instance: set once it is known to the name of the instance, and whether it is new.
    """

    def __init__(self, session: Session, means: Means, name: str | None) -> None:
        self._session = session
        self._means = means
        self._name = name
        self._view = ReplicaView(session.node, session.data)
        self.running: str | None = None
        self.instance: asyncio.Future[tuple[str, bool]] = asyncio.get_running_loop().create_future()

    async def bring(self, state: SourceState, began: float) -> None:
        """Build a folder, load its image, and follow the version until it runs, completes or fails.

        Args:
            state: what the folder holds.
            began: when the change was noticed, as `time.monotonic` has it.

        Raises:
            ResideError: it can't be loaded, or the version has failed; the message says why.
        """
        times = Times(began)
        image = await self._means.build(state)
        times.done("build")
        existing = target(await self._view.rows(), state, self._name)
        if existing is not None:
            self._found(existing["name"], is_new=False)
        if (
            existing is not None
            and existing["image"] == resolved(image)
            and existing["status"] in ("running", "completed")
        ):
            self._arrive(Arrival(existing["name"], existing["version"], existing["status"]))
            return
        done = await self._load(spec_of(image, existing, self._name), times)
        name, version = done.approve_request.name if done.approve_request else "", done.version or 0
        self._found(name, is_new=True)
        self.running = f"{name} version {version} is rolled out"
        row = await loading.follow_version(self._session, name, version, done.health, self._tell)
        times.done("start")
        self.running = f"{name} version {version} is {row['status']}"
        if row["status"] == "error":
            raise ResideError(f"version {version} of {name} failed: {row['reason'] or 'no reason was reported'}")
        self._arrive(Arrival(name, version, row["status"], times))

    def _arrive(self, arrival: Arrival) -> None:
        self.running = f"{arrival.name} version {arrival.version} is {arrival.status}"
        self._means.arrive(arrival)

    def _found(self, name: str, *, is_new: bool) -> None:
        if not self.instance.done():
            self.instance.set_result((name, is_new))

    def _tell(self, row: Row) -> None:
        if row["reason"]:
            self._means.say(f"{row['name']} version {row['version']} is {row['status']}: {row['reason']}")

    async def _load(self, spec: LoadRequestSpec, times: Times) -> LoadRequest:
        """Load an image; return the load request with its version."""
        async with self._request(spec) as (number, request):
            seen = await loading.wait_validated(request, lambda _: None)
            times.done("validation")
            try:
                done = await loading.approve(self._session, request, seen, self._means.decide, self._means.say)
            except NotAllowed as error:
                self._means.say(f"{error}: somebody else may approve it, `reside request approve {number}`")
                done = await approved_by_others(request)
            times.done("approval")
            return done

    @asynccontextmanager
    async def _request(self, spec: LoadRequestSpec) -> AsyncIterator[tuple[int, CoMap]]:
        """Create a load request. If the block is left by an error or is cancelled, reject it."""
        number, request = await to_its_end(
            loading.create_request(self._session, spec), lambda made: self._withdraw(*made)
        )
        try:
            yield number, request
        except BaseException:
            await self._withdraw(number, request)
            raise

    async def _withdraw(self, number: int, request: CoMap) -> None:
        """Reject a load request that is open. It may be decided already, or this account may not decide it."""
        with suppress(ResideError, JazzError, TimeoutError):
            async with asyncio.timeout(WITHDRAW_S):
                await loading.wait_validated(request, lambda _: None)
                reason = "the files have changed, or `reside dev` was interrupted"
                await self._session.call(REJECT_LOAD_REQUEST, {"id": number, "reason": reason})
                self._means.say(f"load request {number} was rejected")


async def approved_by_others(request: CoMap) -> LoadRequest:
    """Wait, however long it takes, until somebody else has decided on a load request; return it with its version.

    Raises:
        LoadRefused: it was rejected, has expired, or could not be carried out.
    """
    async with request.watch() as changes:
        async for value in changes:
            current = LoadRequest.model_validate(value.as_dict())
            if current.status == "approved" and current.version is not None:
                return current
            if current.status in ("rejected", "invalid"):
                why = current.rejection_reason or current.error_message
                raise LoadRefused(f"load request {current.id} is {current.status}: {why}")
    raise LoadRefused("the load request was deleted")


async def to_its_end(work: Coroutine[Any, Any, Value], undo: Callable[[Value], Awaitable[None]]) -> Value:
    """Return the result of work that is not interrupted; if this is cancelled, undo the work when it is done."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await undo(await task)
        raise


def target(rows: Sequence[Row], state: SourceState, name: str | None) -> Row | None:
    """Return the instance that a folder's image updates; None for a new one.

    Raises:
        InvalidInput: several have this identity and no name chooses one, or the name is that of another replica.
    """
    same = [row for row in rows if row["identity"] == resolved(state.manifest.identity)]
    if name is None or state.manifest.info.exclusive:
        if len(same) > 1:
            names = ", ".join(sorted(row["name"] for row in same))
            raise InvalidInput(f"{names} are instances of {state.manifest.identity}: choose one with --name")
        return same[0] if same else None
    found = next((row for row in rows if row["name"] == name), None)
    if found is not None and found not in same:
        raise InvalidInput(f"{name} is an instance of {found['identity']}: choose another name with --name")
    return found


def spec_of(image: str, existing: Row | None, name: str | None) -> LoadRequestSpec:
    """Return what to load: a new version of an existing instance, or a new instance."""
    if existing is not None:
        return LoadRequestSpec(image=image, replica_id=existing["id"])
    return LoadRequestSpec(image=image, name=name)


async def develop(
    development: Development,
    states: AsyncIterator[tuple[SourceState, float]],
    fail: Callable[[Exception], None],
    expected: tuple[type[Exception], ...],
) -> None:
    """Bring each state into the cluster; one that comes while another is on its way takes its place.

    Args:
        development: see there.
        states: what the folder holds, and when it was noticed; each differs from the one before.
        fail: called with why a state could not be brought into the cluster.
        expected: errors after which the next state is waited for.
    """

    async def bring(state: SourceState, began: float) -> None:
        try:
            await development.bring(state, began)
        except expected as error:
            fail(error)

    current: asyncio.Task[None] | None = None
    async with asyncio.TaskGroup() as group:  # at its end, also by Ctrl-C, the current task is over
        async for state, began in states:
            if current is not None:
                current.cancel()
                await asyncio.wait({current})
            current = group.create_task(bring(state, began))
