"""Access of replicas to their locks in etcd: each has a user, which may touch only the keys of its own account.

Alpha is etcd's `root`. All passwords follow from Alpha's agent secret, so nothing has to be stored: after a loss of
etcd's data, Alpha adds the same users again, and the replicas log in as before.
"""

from __future__ import annotations

import hashlib
import hmac
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from reside.jazz import AccountId
from reside.locks import LEADER_PREFIX, ROOT, EtcdUser, Leadership, Users
from reside.model.constants import ALPHA_NAME
from reside.replica.lock_access import PASSWORD, USER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reside.alpha.data import AlphaData
    from reside.alpha.granting.blocks import Blocks
    from reside.alpha.state import Alpha
    from reside.jazz import Credentials
    from reside.locks import Held, LockService
    from reside.model.entities import Replica
    from reside.replica import ControlBlock


def user_of(alpha: Credentials, account: str) -> EtcdUser:
    """Return the user of an account: its password is HMAC-SHA256 of the name, keyed with Alpha's agent secret."""
    text = f"reside etcd user {account}".encode()
    return EtcdUser(account, hmac.new(alpha.agent_secret.encode(), text, hashlib.sha256).hexdigest())


def root_user(alpha: Credentials) -> EtcdUser:
    """Return Alpha's own user."""
    return user_of(alpha, ROOT)


def users(alpha: Credentials, locks: LockService) -> Users:
    """Return the users of etcd, through Alpha's locks."""
    return Users(locks.etcd, root_user(alpha))


async def give_access(data: AlphaData, block: ControlBlock, user: EtcdUser) -> None:
    """Let the replica of a control block read its user, if it can't yet. The caller holds Alpha's lock."""
    if block.lock_access is not None:
        return
    group = data.node.create_group(f"locks of {block.name}")
    await group.add_member(AccountId(user.name), "reader")
    block.set_lock_access(group.create_map({USER: user.name, PASSWORD: user.password}).id)


async def sync_access(alpha: Alpha, blocks: Blocks, replica: Replica) -> None:
    """Add the user of a replica to etcd, and let the replica read it, unless that is done."""
    if replica.account == alpha.account:
        return
    user = user_of(alpha.context.credentials, replica.account)
    if user.name not in alpha.lock_users:
        await users(alpha.context.credentials, alpha.context.locks).add(user)
        alpha.lock_users.add(user.name)
    block = await blocks.find(replica.id)
    if block is not None and block.lock_access is None:
        async with alpha.transaction() as tx:
            await tx.run_exclusively(lambda: give_access(alpha.data, block, user))


async def withdraw_access(alpha: Alpha, account: str) -> None:
    """Remove the user of a replica that is being deleted, with its locks."""
    await users(alpha.context.credentials, alpha.context.locks).remove(account)
    alpha.lock_users.discard(account)


def leadership(alpha: Alpha) -> Leadership:
    """Return Alpha's leadership. Before each term etcd is made to ask for users, if it has lost its data."""

    @asynccontextmanager
    async def lock() -> AsyncIterator[Held]:
        locks, known = alpha.context.locks, users(alpha.context.credentials, alpha.context.locks)
        await known.secure()
        async with locks.lock(f"{LEADER_PREFIX}{ALPHA_NAME}", wait=None) as held:
            if await known.secure():  # it has lost its data while this process waited, and now the lock, too
                await held.check()
            alpha.lock_users = set(await known.names())
            yield held

    return Leadership(ALPHA_NAME, lock)
