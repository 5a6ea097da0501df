"""A small Alpha for tests: it creates accounts and control blocks, and writes expected grants. It loads no images."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pydantic import SecretStr

from reside.jazz import Credentials, Node
from reside.model.errors import NotReady
from reside.replica import ControlBlock, ReplicaSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from reside.model.permissions import Grant, PermissionRef

WITHIN_S: Final = 60.0
"""Seconds to wait until a replica has carried out what its control block expects."""


@dataclass(frozen=True)
class Identity:
    """What a replica needs to start: an account with a control block."""

    credentials: Credentials = field(repr=False)
    settings: ReplicaSettings
    rcb: ControlBlock
    """The control block, loaded by the small Alpha."""


class SmallAlpha:
    """An account that does for tests what Alpha does for the control blocks of a cluster.

    Args:
        node: the Jazz node of its account.
        sync_server: address of the sync server, for the settings of replicas.
        etcd_hosts: addresses of etcd, for the same.
    """

    def __init__(self, node: Node, sync_server: str, etcd_hosts: Sequence[str]) -> None:
        self.node = node
        self.sync_server = sync_server
        self._etcd_hosts = tuple(etcd_hosts)
        self._last_id = 2  # ids up to 2 belong to replicas of ReSide

    async def account(self, name: str) -> Credentials:
        """Return a new registered account."""
        credentials = Credentials.generate()
        async with Node(self.sync_server, credentials) as node:
            await node.register(name)
        return credentials

    async def identity(self, name: str) -> Identity:
        """Return a new account with an empty control block, for an instance that listens on a free loopback port."""
        self._last_id += 1
        number = self._last_id
        credentials = await self.account(name)
        group = self.node.create_group()
        await group.add_member(credentials.account_id, "writer")
        permissions = group.create_map({})
        root = group.create_map({"id": number, "name": name, "requirements": {}, "permissions": permissions.id})
        await self.node.flush()
        settings = ReplicaSettings(
            replica_name=name,
            control_block_id=root.id,
            account_id=credentials.account_id,
            agent_secret=SecretStr(credentials.agent_secret),
            sync_server_url=self.sync_server,
            etcd_hosts=self._etcd_hosts,
            listen_host="127.0.0.1",
            listen_port=0,
        )
        return Identity(credentials, settings, await ControlBlock.load(self.node, root.id))

    async def expect(self, identity: Identity, ref: PermissionRef, grant: Grant) -> None:
        """Write an expected grant into a control block."""
        await identity.rcb.set_expected(ref, grant)
        await self.node.flush()

    async def until_current(self, identity: Identity, ref: PermissionRef, grant: Grant) -> None:
        """Wait until the replica has made `grant` the current grant of `ref`.

        Wait for each expected grant before you expect the next one. Otherwise, `grant` may be current from before, and
        the replica may still carry out what was expected in between.
        """
        await until(identity.rcb, lambda: (found := identity.rcb.find(ref)) is not None and found.current == grant)


async def until(block: ControlBlock, holds: Callable[[], bool]) -> None:
    """Wait until a condition holds for a control block; it is checked after each change of the block.

    Raises:
        NotReady: it did not hold in time; the message has the permissions of the block.
    """
    changed = block.watch()
    try:
        async with asyncio.timeout(WITHIN_S):
            await block.refresh()
            while not holds():
                await changed.wait()
                changed.clear()
                await block.refresh()
    except TimeoutError:
        shown = ", ".join(f"{p.ref.key} expected {p.expected} current {p.current}" for p in block.permissions())
        raise NotReady(f"after {WITHIN_S:g} s, the control block of {block.name} still has {shown or 'none'}") from None


@asynccontextmanager
async def small_alpha(sync_server: str, etcd_hosts: Sequence[str]) -> AsyncIterator[SmallAlpha]:
    """Register an account at a running sync server, and yield it as a small Alpha while the block is open."""
    async with Node(sync_server, Credentials.generate()) as node:
        await node.register("alpha")
        yield SmallAlpha(node, sync_server, etcd_hosts)
