"""The operations of Alpha at whose every point the process is killed: how each is prepared, run, and taken up again.

`prepare` runs in a life that does not lead, and returns the subject. `act` is what is killed. `repeat` is what a client
does that got no answer: it calls again, and Alpha carries the call out or says that it was carried out. Nothing repeats
what the leader does: the next leader continues it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from reside.model.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from support.alpha_lives import Life
    from support.alpha_world import World

    from reside.model.entities import Replica

_VERSIONS = 5
"""How many versions a worker gets before it is deleted."""


class Stage:
    """What operations leave for others: open requests, and replicas with few versions."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.open: deque[int] = deque()
        self.workers: deque[int] = deque()
        self.old: deque[int] = deque()
        self.disabled: int | None = None
        self.greeter = 0
        self.claimed = 0

    async def open_request(self, life: Life) -> int:
        """Return a request for a new worker that requires approval."""
        if not self.open:
            number = await self.world.created(life, "worker:v1", name=self.world.new_name())
            await self.world.validated(life, number)
            self.open.append(number)
        return self.open.popleft()

    async def worker(self, life: Life) -> Replica:
        """Return a worker with few versions; it comes last the next time."""
        while self.workers:
            number = self.workers.popleft()
            record = await self.world.replica(life, number)
            if len(record.value.versions) < _VERSIONS:
                self.workers.append(number)
                return record.value
            self.old.append(number)
        return await self._new_worker(life)

    async def old_worker(self, life: Life) -> Replica:
        """Return a worker that no other operation uses any more."""
        if not self.old and len(self.workers) > 1:
            self.old.append(self.workers.popleft())
        if self.old:
            return (await self.world.replica(life, self.old.popleft())).value
        worker = await self._new_worker(life)
        self.workers.remove(worker.id)
        return worker

    async def _new_worker(self, life: Life) -> Replica:
        life.lead()
        worker = await self.world.loaded(life, "worker:v1", name=self.world.new_name())
        await life.rest()
        self.workers.append(worker.id)
        return worker


class Operation(Protocol):
    """An operation.

    Attributes:
        name: as the report calls it.
        is_call: whether a client makes it, and calls again without an answer; the leader makes the others.
    """

    name: str
    is_call: bool

    async def prepare(self, life: Life) -> Any:
        """Return the subject; the life does not lead."""

    async def act(self, life: Life, subject: Any) -> None:
        """Do what is killed."""

    async def repeat(self, life: Life, subject: Any) -> None:
        """Call again, as a client without an answer does; another life leads now, and has done what it finds."""

    async def done(self, life: Life, subject: Any) -> None:
        """Check that the operation is carried out, after everything is settled."""


class Steps:
    """The steps that an `Operation` need not have."""

    name = ""
    is_call = False

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.world = stage.world

    async def prepare(self, life: Life) -> Any:
        """Return no subject."""

    async def repeat(self, life: Life, subject: Any) -> None:
        """Call nothing again."""

    async def done(self, life: Life, subject: Any) -> None:
        """Check nothing more."""


async def again(call: Awaitable[None], *, is_done: bool) -> None:
    """Repeat a call: it succeeds, unless it was carried out."""
    try:
        await call
    except Conflict:
        assert is_done, "the repeated call is in conflict, and the first one was not carried out"
    else:
        assert not is_done, "the call was carried out twice"
