"""The operations of replicas: versions, rollouts and management; see `integration.alpha.operations`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from integration.alpha.operations import Steps
from support.eventually import eventually

from reside.alpha import records
from reside.alpha.granting.blocks import Blocks
from reside.alpha.managing import deletion
from reside.alpha.managing.configure import set_enabled
from reside.alpha.managing.deleting import delete_replica
from reside.alpha.rollouts import reconcile_replica
from reside.alpha.versions import create_version

if TYPE_CHECKING:
    from collections.abc import Callable

    from integration.alpha.operations import Operation, Stage
    from support.alpha_lives import Life

DEADLINE_S = 1


class _FirstVersion(Steps):
    name = "version creation, first"

    async def prepare(self, life: Life) -> int:
        return await self.world.approved(life, "worker:v1", name=self.world.new_name())

    async def act(self, life: Life, subject: int) -> None:
        await create_version(life.alpha, subject)

    async def done(self, life: Life, subject: int) -> None:
        request = await self.world.request(life, subject)
        assert request.version == 1
        self.stage.workers.append(request.target_replica or 0)


class _LaterVersion(Steps):
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


class _Rollback(Steps):
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


class _Disable(Steps):
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


class _OrderDeletion(Steps):
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


REPLICA_OPERATIONS: tuple[Callable[[Stage], Operation], ...] = (
    _FirstVersion,
    _LaterVersion,
    _Rollout,
    _Disable,
    _Rollback,
    _OrderDeletion,
    _Delete,
)
