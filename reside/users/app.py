"""The replica *user manager*: declaration and main loop."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import stamina

from reside.common.backoff import DEFAULT
from reside.common.workqueue import WorkQueue
from reside.jazz import AccountId
from reside.model.alpha_contract import MANAGE_BLOCKS, READ_REPLICAS
from reside.model.constants import ALPHA_CONTRACT
from reside.model.errors import NotReady
from reside.replica import Replica
from reside.users import contract as names
from reside.users.contract import USER_MANAGER_CONTRACT
from reside.users.manager import open_manager
from reside.users.rpc import Methods
from reside.users.store import make_data, open_data

if TYPE_CHECKING:
    from reside.jazz import Group
    from reside.model.manifest import ContractManifest
    from reside.model.permissions import Grant, PermissionRef
    from reside.replica import Context

_ALPHA_WITHIN_S: Final = 300.0
"""Seconds to wait until the control block names Alpha; then the process ends, and is started again."""
_WORKERS: Final = 4
"""Users that are looked at side by side; those that need a write wait for the lock."""
_ENTRY_PAUSE_S: Final = 0.5
"""Pause before a changed entry is looked at. A replica can change entries of its own control block in a loop."""


def declare(contract: ContractManifest) -> Replica:
    """Declare the user manager; `contract` is the manifest of `user-manager.v1`."""
    replica, loop = Replica(contract), Loop()
    replica.data(USER_MANAGER_CONTRACT)(make_data)
    replica.permission(USER_MANAGER_CONTRACT, names.READ_USERS, granted=_reader_granted, revoked=_reader_revoked)
    methods = Methods(loop.add)
    for name, handler in (
        (names.ADD_USER, methods.add_user),
        (names.RENAME_USER, methods.rename_user),
        (names.REMOVE_USER, methods.remove_user),
        (names.LIST_USERS, methods.list_users),
        (names.DEFINE_SET, methods.define_set),
        (names.DELETE_SET, methods.delete_set),
        (names.LIST_SETS, methods.list_sets),
        (names.ASSIGN_SET, methods.assign_set),
        (names.UNASSIGN_SET, methods.unassign_set),
        (names.GRANT_PERMISSION, methods.grant_permission),
        (names.REVOKE_PERMISSION, methods.revoke_permission),
        (names.WHO_HAS, methods.who_has),
    ):
        replica.method(USER_MANAGER_CONTRACT, name)(handler)
    replica.main(loop.run)
    return replica


class Loop:
    """Passes in the background: for every user at the start, and after a change of an entry of a user."""

    def __init__(self) -> None:
        self._queue: WorkQueue | None = None

    def add(self, account: str) -> None:
        """Queue a pass for an account. Before the first passes it has no effect, since those are for all accounts."""
        if self._queue is not None:
            self._queue.add(account)

    async def run(self, context: Context) -> None:
        """Make passes until cancelled, once Alpha has granted what they need."""
        async for attempt in stamina.retry_context(on=NotReady, attempts=None, timeout=_ALPHA_WITHIN_S, wait_max=5.0):
            with attempt:
                alpha = await context.peer(ALPHA_CONTRACT)
        for permission in (MANAGE_BLOCKS, READ_REPLICAS):
            await alpha.until_granted(permission)
        manager = await open_manager(context)
        async with manager.blocks(self._entry_changed) as blocks:
            self._queue = WorkQueue("users", partial(manager.keep, blocks), workers=_WORKERS, backoff=DEFAULT)
            for account in manager.data.known_accounts():
                self._queue.add(account)
            await self._queue.run()

    def _entry_changed(self, account: str) -> None:
        if self._queue is not None:
            self._queue.add(account, after=_ENTRY_PAUSE_S)


async def _reader_granted(context: Context, ref: PermissionRef, _grant: Grant) -> None:
    """Let an account read the data."""
    group = await _readers(context)
    async with context.transaction(_members(group)) as tx:
        await tx.run_exclusively(lambda: group.add_member(AccountId(ref.account), "reader"))


async def _reader_revoked(context: Context, ref: PermissionRef, _grant: Grant) -> None:
    """Let an account read no later data: the read key is rotated."""
    group = await _readers(context)
    async with context.transaction(_members(group)) as tx:
        await tx.run_exclusively(lambda: group.remove_member(AccountId(ref.account)))


async def _readers(context: Context) -> Group:
    return (await open_data(context, context.data[USER_MANAGER_CONTRACT])).readers


def _members(group: Group) -> str:
    """Return the lock of a group's members: two concurrent removals would each reveal a new key to the other member."""
    return f"members/{group.id}"
