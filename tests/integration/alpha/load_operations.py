"""The operations of load requests; see `integration.alpha.operations`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from integration.alpha.operations import Steps, again
from support.eventually import eventually

from reside.alpha import bootstrap, previews, records
from reside.alpha.finished_requests import FinishedRequests, index
from reside.alpha.loading.approve import approve, reject
from reside.alpha.loading.create import create_request
from reside.alpha.loading.validate import validate
from reside.model.sentinel_data import request_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from integration.alpha.operations import Operation, Stage
    from support.alpha_lives import Life


class _Create(Steps):
    name = "create"
    is_call = True

    async def prepare(self, life: Life) -> str:
        return await self.world.spec("worker:v1", name=self.world.new_name())

    async def act(self, life: Life, subject: str) -> None:
        await create_request(life.alpha, subject, self.world.client.account_id)

    async def repeat(self, life: Life, subject: str) -> None:
        record = await create_request(life.alpha, subject, self.world.client.account_id)
        self.stage.open.append(record.value.id)


class _Validate(Steps):
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


class _Reject(Steps):
    name = "reject"
    is_call = True

    async def prepare(self, life: Life) -> int:
        return await self.stage.open_request(life)

    async def act(self, life: Life, subject: int) -> None:
        await reject(life.alpha, subject, "not wanted")

    async def repeat(self, life: Life, subject: int) -> None:
        await again(self.act(life, subject), is_done=(await self.world.request(life, subject)).status == "rejected")


class _Finish(Steps):
    """A finished request leaves the index of open ones, and one of those before is deleted."""

    name = "finish"

    async def prepare(self, life: Life) -> int:
        await bootstrap.store_settings(life.alpha, life.alpha.cluster.model_copy(update={"request_history": 2}))
        number = await self.stage.open_request(life)
        await reject(life.alpha, number, "not wanted")
        return number

    async def act(self, life: Life, subject: int) -> None:
        await previews.withdraw(life.alpha, subject)
        record = await records.find_request(life.alpha.data, subject)
        await FinishedRequests().finish(life.alpha, record)

    async def done(self, life: Life, subject: int) -> None:
        assert str(subject) in await index(life.alpha.data)


class _Approve(Steps):
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


LOAD_OPERATIONS: tuple[Callable[[Stage], Operation], ...] = (
    _Create,
    _Validate,
    _Reject,
    _Approve,
    _Finish,
)
