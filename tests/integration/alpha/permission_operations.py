"""The operations of permissions, and what a replica publishes; see `integration.alpha.operations`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from integration.alpha.operations import Steps
from pydantic import SecretStr
from support.alpha_lives import ENDPOINT
from support.alpha_world import GREETING

from reside.alpha.granting import decide
from reside.alpha.granting.claim import claim
from reside.jazz import Credentials, Node
from reside.model.alpha_contract import MANAGE_REPLICAS, READ_REPLICAS
from reside.model.constants import ALPHA_CONTRACT, ALPHA_ID, RECOVERY_PREFIX
from reside.model.errors import Conflict
from reside.replica.grants import PermissionLoop
from reside.replica.lifecycle import _publish

if TYPE_CHECKING:
    from collections.abc import Callable

    from integration.alpha.operations import Operation, Stage
    from support.alpha_lives import Life


class _Decision(Steps):
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
        loop = PermissionLoop(life.alpha.context, life.hosts.declaration)
        loop.start()
        await loop.reconcile(self.world.client.account_id)

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


class _Publish(Steps):
    name = "publish"
    is_call = True

    async def act(self, life: Life, subject: None) -> None:
        await _publish(life.alpha.context, life.hosts.declaration, "http://other")

    async def repeat(self, life: Life, subject: None) -> None:
        assert life.node.account.profile["endpoints"] == {"internal": ENDPOINT}

    async def done(self, life: Life, subject: None) -> None:
        await _publish(life.alpha.context, life.hosts.declaration, ENDPOINT)


class _Claim(Steps):
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


PERMISSION_OPERATIONS: tuple[Callable[[Stage], Operation], ...] = (
    _Grant,
    _Revoke,
    _StepOfGrant,
    _StepOfRevocation,
    _Publish,
    _Claim,
)
