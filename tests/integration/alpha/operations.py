"""The operations of Alpha at whose every point the process is killed: how each is prepared, run, and taken up again.

`prepare` runs in a life that does not lead, and returns the subject. `act` is what is killed. `repeat` is what a client
does that got no answer: it calls again, and Alpha carries the call out or says that it was carried out. Nothing repeats
what the leader does: the next leader continues it.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr
from support.alpha_lives import ENDPOINT
from support.alpha_world import GREETING
from support.eventually import eventually

from reside.alpha import records
from reside.alpha.granting import decide
from reside.alpha.granting.blocks import Blocks
from reside.alpha.granting.claim import claim
from reside.alpha.loading.approve import approve, reject
from reside.alpha.loading.create import create_request
from reside.alpha.loading.validate import validate
from reside.alpha.managing import deletion
from reside.alpha.managing.configure import set_enabled
from reside.alpha.managing.deleting import delete_replica
from reside.alpha.rollouts import reconcile_replica
from reside.alpha.versions import create_version
from reside.jazz import Credentials, Node
from reside.model.alpha_contract import MANAGE_REPLICAS, READ_REPLICAS
from reside.model.constants import ALPHA_CONTRACT, ALPHA_ID, RECOVERY_PREFIX
from reside.model.errors import Conflict
from reside.model.sentinel_data import request_of
from reside.replica.grants import reconcile
from reside.replica.lifecycle import _publish

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from support.alpha_lives import Life
    from support.alpha_world import World

    from reside.model.entities import Replica

DEADLINE_S = 1
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


class Operation:
    """An operation.

    Attributes:
        name: as the report calls it.
        is_call: whether a client makes it, and calls again without an answer; the leader makes the others.
    """

    name = ""
    is_call = False

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.world = stage.world

    async def prepare(self, life: Life) -> Any:
        """Return the subject; the life does not lead."""

    async def act(self, life: Life, subject: Any) -> None:
        """Do what is killed."""
        raise NotImplementedError

    async def repeat(self, life: Life, subject: Any) -> None:
        """Call again, as a client without an answer does; another life leads now, and has done what it finds."""

    async def done(self, life: Life, subject: Any) -> None:
        """Check that the operation is carried out, after everything is settled."""


class _Create(Operation):
    name = "create"
    is_call = True

    async def prepare(self, life: Life) -> str:
        return await self.world.spec("worker:v1", name=self.world.new_name())

    async def act(self, life: Life, subject: str) -> None:
        await create_request(life.alpha, subject, self.world.client.account_id)

    async def repeat(self, life: Life, subject: str) -> None:
        record = await create_request(life.alpha, subject, self.world.client.account_id)
        self.stage.open.append(record.value.id)


class _Validate(Operation):
    name = "validate"

    async def prepare(self, life: Life) -> int:
        return await self.world.created(life, "worker:v1", name=self.world.new_name())

    async def act(self, life: Life, subject: int) -> None:
        await validate(life.alpha, subject)
        with life.uncounted():
            results = (await life.alpha.sentinel.open()).results
            await eventually("the preview", lambda: subject in map(request_of, results))
        await validate(life.alpha, subject)

    async def done(self, life: Life, subject: int) -> None:
        assert (await self.world.request(life, subject)).status == "requires-approval"
        self.stage.open.append(subject)


class _Reject(Operation):
    name = "reject"
    is_call = True

    async def prepare(self, life: Life) -> int:
        return await self.stage.open_request(life)

    async def act(self, life: Life, subject: int) -> None:
        await reject(life.alpha, subject, "not wanted")

    async def repeat(self, life: Life, subject: int) -> None:
        await again(self.act(life, subject), is_done=(await self.world.request(life, subject)).status == "rejected")


class _Approve(Operation):
    name = "approve"
    is_call = True

    async def prepare(self, life: Life) -> tuple[int, str]:
        number = await self.stage.open_request(life)
        return number, str((await self.world.request(life, number)).revision)

    async def act(self, life: Life, subject: tuple[int, str]) -> None:
        await approve(life.alpha, *subject, {})

    async def repeat(self, life: Life, subject: tuple[int, str]) -> None:
        request = await self.world.request(life, subject[0])
        await again(self.act(life, subject), is_done=request.status == "approved")

    async def done(self, life: Life, subject: tuple[int, str]) -> None:
        request = await self.world.request(life, subject[0])
        assert request.version == 1
        self.stage.workers.append(request.target_replica or 0)


class _FirstVersion(Operation):
    name = "version creation, first"

    async def prepare(self, life: Life) -> int:
        return await self.world.approved(life, "worker:v1", name=self.world.new_name())

    async def act(self, life: Life, subject: int) -> None:
        await create_version(life.alpha, subject)

    async def done(self, life: Life, subject: int) -> None:
        request = await self.world.request(life, subject)
        assert request.version == 1
        self.stage.workers.append(request.target_replica or 0)


class _LaterVersion(Operation):
    name = "version creation, later"

    async def prepare(self, life: Life) -> int:
        worker = await self.stage.worker(life)
        image = "worker:v2" if len(worker.versions) % 2 else "worker:v3"
        return await self.world.approved(life, image, replicaId=worker.id)

    async def act(self, life: Life, subject: int) -> None:
        await create_version(life.alpha, subject)

    async def done(self, life: Life, subject: int) -> None:
        assert ((await self.world.request(life, subject)).version or 0) > 1


class _Rollout(_LaterVersion):
    name = "rollout"

    async def prepare(self, life: Life) -> int:
        number = await super().prepare(life)
        await create_version(life.alpha, number)
        return number

    async def act(self, life: Life, subject: int) -> None:
        number = (await self.world.request(life, subject)).target_replica or 0
        await passes(life, number, 3)


class _Rollback(Operation):
    name = "rollback"

    async def prepare(self, life: Life) -> int:
        worker = await self.stage.worker(life)
        self.world.orders.hold.add(f"Deployment/{worker.name}-{len(worker.versions) + 1}")
        health = {"deadlineS": DEADLINE_S, "minReadyS": 0, "onFailure": "roll-back"}
        number = await self.world.approved(life, "worker:v2", replicaId=worker.id, health=health)
        await create_version(life.alpha, number)
        while (await self.world.replica(life, worker.id)).value.versions[-1].starting_since is None:
            await passes(life, worker.id, 1)
        self.world.clock.ahead_ms += 1000 * DEADLINE_S + 100
        return worker.id

    async def act(self, life: Life, subject: int) -> None:
        await passes(life, subject, 3)

    async def done(self, life: Life, subject: int) -> None:
        replica = (await self.world.replica(life, subject)).value
        assert replica.current_version == replica.versions[-1].rolled_back_to


class _Disable(Operation):
    name = "disable"
    is_call = True

    async def prepare(self, life: Life) -> int:
        return (await self.stage.worker(life)).id

    async def act(self, life: Life, subject: int) -> None:
        await set_enabled(life.alpha, subject, self.world.client.account_id, enabled=False, is_manager=True)

    async def repeat(self, life: Life, subject: int) -> None:
        await self.act(life, subject)

    async def done(self, life: Life, subject: int) -> None:
        assert not (await self.world.replica(life, subject)).value.management.enabled
        await set_enabled(life.alpha, subject, self.world.client.account_id, enabled=True, is_manager=True)


class _OrderDeletion(Operation):
    name = "delete, order"
    is_call = True

    async def prepare(self, life: Life) -> tuple[int, str]:
        worker = await self.stage.old_worker(life)
        return worker.id, (await deletion.preview(life.alpha, worker.id)).revision

    async def act(self, life: Life, subject: tuple[int, str]) -> None:
        number, revision = subject
        await deletion.delete(life.alpha, number, revision, self.world.client.account_id, force=False)

    async def repeat(self, life: Life, subject: tuple[int, str]) -> None:
        if await records.find_replica(life.alpha.data, subject[0]) is not None:
            await self.act(life, subject)

    async def done(self, life: Life, subject: tuple[int, str]) -> None:
        assert await records.find_replica(life.alpha.data, subject[0]) is None


class _Delete(_OrderDeletion):
    name = "delete, carried out"
    is_call = False

    async def prepare(self, life: Life) -> tuple[int, str]:
        subject = await super().prepare(life)
        await super().act(life, subject)
        return subject

    async def act(self, life: Life, subject: tuple[int, str]) -> None:
        record = await self.world.replica(life, subject[0])
        blocks = Blocks(life.alpha.data, lambda _: None)
        if not await delete_replica(life.alpha, blocks, record):
            with life.uncounted():
                reports = (await life.alpha.sentinel.open()).reports
                await eventually("the end of the stack", lambda: record.value.name not in reports)
            await delete_replica(life.alpha, blocks, record)
        blocks.close()

    async def repeat(self, life: Life, subject: tuple[int, str]) -> None:
        """Do nothing: the leader continues."""


class _Decision(Operation):
    """A decision of a person about a permission of the client."""

    permission = "wave"

    def order(self) -> decide.Order:
        return decide.Order(self.world.client.account_id, self.stage.greeter, GREETING, self.permission)

    async def grant(self, life: Life, order: decide.Order) -> None:
        await decide.grant(life.alpha, order, self.world.client.account_id, "test")

    async def revoke(self, life: Life, order: decide.Order) -> None:
        await decide.revoke(life.alpha, order, self.world.client.account_id, "test")


class _Grant(_Decision):
    name = "grant"
    is_call = True

    async def prepare(self, life: Life) -> None:
        with suppress(Conflict):
            await self.revoke(life, self.order())

    async def act(self, life: Life, subject: None) -> None:
        await self.grant(life, self.order())

    async def repeat(self, life: Life, subject: None) -> None:
        await self.act(life, subject)


class _Revoke(_Decision):
    name = "revoke"
    is_call = True

    async def prepare(self, life: Life) -> None:
        await self.grant(life, self.order())

    async def act(self, life: Life, subject: None) -> None:
        await self.revoke(life, self.order())

    async def repeat(self, life: Life, subject: None) -> None:
        with suppress(Conflict):
            await self.act(life, subject)


class _StepOfGrant(_Decision):
    name = "permission step, granted"
    names = (READ_REPLICAS, MANAGE_REPLICAS)

    def orders(self) -> list[decide.Order]:
        account = self.world.client.account_id
        return [decide.Order(account, ALPHA_ID, ALPHA_CONTRACT, name) for name in self.names]

    async def prepare(self, life: Life) -> None:
        for order in self.orders():
            with suppress(Conflict):
                await self.revoke(life, order)
        await self.act(life, None)
        for order in self.orders():
            await self.grant(life, order)

    async def act(self, life: Life, subject: None) -> None:
        await life.alpha.context.rcb.refresh()
        await reconcile(life.alpha.context, life.hosts.declaration, self.world.client.account_id)

    async def done(self, life: Life, subject: None) -> None:
        assert life.alpha.data.replicas_group.role_of(self.world.client.account_id) == "reader"


class _StepOfRevocation(_StepOfGrant):
    name = "permission step, revoked"

    async def prepare(self, life: Life) -> None:
        for order in self.orders():
            await self.grant(life, order)
        await self.act(life, None)
        for order in self.orders():
            await self.revoke(life, order)

    async def done(self, life: Life, subject: None) -> None:
        assert life.alpha.data.replicas_group.role_of(self.world.client.account_id) is None


class _Publish(Operation):
    name = "publish"
    is_call = True

    async def act(self, life: Life, subject: None) -> None:
        await _publish(life.alpha.context, life.hosts.declaration, "http://other")

    async def repeat(self, life: Life, subject: None) -> None:
        assert life.node.account.profile["endpoints"] == {"internal": ENDPOINT}

    async def done(self, life: Life, subject: None) -> None:
        await _publish(life.alpha.context, life.hosts.declaration, ENDPOINT)


class _Claim(Operation):
    name = "claim"
    is_call = True

    async def prepare(self, life: Life) -> tuple[str, str]:
        self.stage.claimed += 1
        credentials = Credentials.generate()
        async with Node(life.hosts.settings.sync_server_url, credentials) as node:
            await node.register("admin")
        return credentials.account_id, f"{RECOVERY_PREFIX}{self.stage.claimed}"

    async def act(self, life: Life, subject: tuple[str, str]) -> None:
        account, code = subject
        await claim(life.alpha, account, code, SecretStr(code))

    async def repeat(self, life: Life, subject: tuple[str, str]) -> None:
        await self.act(life, subject)


OPERATIONS: tuple[Callable[[Stage], Operation], ...] = (
    _Create,
    _Validate,
    _Reject,
    _Approve,
    _FirstVersion,
    _LaterVersion,
    _Rollout,
    _Disable,
    _Rollback,
    _OrderDeletion,
    _Delete,
    _Grant,
    _Revoke,
    _StepOfGrant,
    _StepOfRevocation,
    _Publish,
    _Claim,
)


async def passes(life: Life, number: int, count: int) -> None:
    """Reconcile a replica so often, each time after the Sentinel has reported what is declared."""
    blocks = Blocks(life.alpha.data, lambda _: None)
    for _ in range(count):
        record = await records.find_replica(life.alpha.data, number)
        assert record is not None
        await reconcile_replica(life.alpha, blocks, record)
        with life.uncounted():
            await reported(life, record.value.name)
    blocks.close()


async def reported(life: Life, name: str) -> None:
    """Wait until the Sentinel has reported a declared stack."""

    async def is_reported() -> bool:
        desired, report = await life.alpha.sentinel.read_desired(name), await life.alpha.sentinel.read_report(name)
        return desired is not None and report.revision == desired.revision

    await eventually(f"the report of {name}", is_reported)


async def again(call: Awaitable[None], *, is_done: bool) -> None:
    """Repeat a call: it succeeds, unless it was carried out."""
    try:
        await call
    except Conflict:
        assert is_done, "the repeated call is in conflict, and the first one was not carried out"
    else:
        assert not is_done, "the call was carried out twice"
