"""A stage for the whole Sentinel: a control plane, a sync server, etcd, and an account that declares, as Alpha does."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.replicas import Identity, Servers, World, world
from support.sentinel import settings, until

from reside.jazz import AccountId, CoMap, Credentials, Group, Node
from reside.local import ClusterInfo
from reside.model.constants import SENTINEL_CONTRACT
from reside.model.kinds import BY_KIND
from reside.model.permissions import Grant, PermissionRef
from reside.model.sentinel_data import CAREFUL, DESIRED, PREVIEW_RESULTS, PREVIEWS, REPORTS
from reside.model.stacks import DesiredStack
from reside.replica.profile import load_profile
from reside.sentinel.app import Sentinel
from reside.sentinel.settings import SentinelSettings

ALL = tuple(BY_KIND)


@dataclass
class Declarer:
    """An account that declares stacks."""

    node: Node
    desired: CoMap
    previews: CoMap
    reports: CoMap
    results: CoMap
    group: Group
    """Owns what it declares; the Sentinel can read it."""
    maps: dict[str, CoMap] = field(default_factory=dict)

    async def declare(self, name: str, *objects: dict[str, Any], entry: bool = True) -> DesiredStack:
        """Write a stack; where it is declared already, its objects."""
        stack = DesiredStack(name, self.node.account_id, objects)
        if name in self.maps:
            self.maps[name].update(stack.document())
        else:
            self.maps[name] = self.group.create_map(stack.document())
        if entry and self.desired.get(name) != self.maps[name].id:
            self.desired.set(name, self.maps[name].id)
        await self.node.flush()
        return stack

    async def ask(self, key: str, name: str, *objects: dict[str, Any]) -> dict[str, Any]:
        """Ask for a preview, and wait for its result."""
        stack = DesiredStack(name, self.node.account_id, objects)
        self.previews.set(key, self.group.create_map(stack.document()).id)
        await self.node.flush()

        async def look() -> dict[str, Any] | None:
            found = self.results.get(key)
            return found if isinstance(found, dict) and found["revision"] in (stack.revision, "") else None

        return await until(look, 60)

    async def report(self, name: str, holds: Callable[[dict[str, Any]], Any], seconds: float = 60) -> dict[str, Any]:
        """The report of a stack, once it is as wanted."""
        seen: dict[str, Any] = {}

        async def look() -> dict[str, Any] | None:
            found = self.reports.get(name)
            if not isinstance(found, str):
                return None
            seen.update(now := (await self.node.load_map(found)).as_dict())
            return now if holds(now) else None

        try:
            return await until(look, seconds)
        except TimeoutError:
            raise AssertionError(f"report of {name} is still {seen}") from None

    async def applied(self, stack: DesiredStack) -> dict[str, Any]:
        """The report of a stack, once this revision is applied."""
        return await self.report(stack.name, lambda now: now.get("revision") == stack.revision)


async def declarer(node: Node, sentinel: AccountId) -> Declarer:
    """The data of the Sentinel with this account, as the node's account sees it."""
    profile = await load_profile(node, sentinel)
    root = await node.load_map(str(profile.contracts[SENTINEL_CONTRACT]))
    names = (DESIRED, PREVIEWS, REPORTS, PREVIEW_RESULTS)
    desired, previews, reports, results = [await node.load_map(root[name]) for name in names]
    group = node.create_group()
    await group.add_member(sentinel, "reader")
    await node.flush()
    return Declarer(node, desired, previews, reports, results, group)


@dataclass
class Stage:
    """All that a test of the Sentinel stands on."""

    world: World
    identity: Identity
    settings: SentinelSettings
    namespace: str

    async def grant(self, account: str, *kinds: str, granted: bool = True) -> None:
        """Grant an account to manage these kinds, and wait until the Sentinel has done so."""
        wanted = Grant(granted=granted)
        refs = [PermissionRef(account, SENTINEL_CONTRACT, BY_KIND[kind].manage) for kind in kinds]
        for ref in refs:
            await self.world.expect(self.identity, ref, wanted)
        for ref in refs:
            await self.world.until_current(self.identity, ref, wanted)

    async def alpha(self) -> Declarer:
        """Alpha, which may declare everything."""
        await self.grant(self.world.alpha.account_id, *ALL)
        return await declarer(self.world.alpha, self.identity.credentials.account_id)

    @asynccontextmanager
    async def other(self, *kinds: str) -> AsyncIterator[Declarer]:
        """Another account that may declare these kinds."""
        credentials: Credentials = await self.world.account("other")
        await self.grant(credentials.account_id, *kinds)
        async with Node(self.settings.sync_server_url, credentials) as node:
            await node.login()
            yield await declarer(node, self.identity.credentials.account_id)

    async def careful(self, value: bool) -> None:
        """Set careful mode, as the bootstrap does: with the Sentinel's own account."""
        async with Node(self.settings.sync_server_url, self.identity.credentials) as node:
            account = await node.login()
            root = await node.load_map(account.profile["contracts"][SENTINEL_CONTRACT])
            root.set(CAREFUL, value)
            await node.flush()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Sentinel]:
        """A Sentinel that runs while the block is open, and is stopped gracefully."""
        sentinel = Sentinel(self.settings)
        task = asyncio.create_task(sentinel.run())
        try:
            yield sentinel
        finally:
            sentinel.stop()
            await task


@asynccontextmanager
async def stage(info: ClusterInfo, on: Servers, namespace: str, folder: Path) -> AsyncIterator[Stage]:
    """A stage in a namespace, with an account and a control block for a Sentinel that does not run yet."""
    async with world(on) as made:
        identity = await made.identity("kubernetes-sentinel")
        chosen = settings(info, namespace, folder, **identity.settings.model_dump())
        yield Stage(made, identity, chosen, namespace)
