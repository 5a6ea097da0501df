"""The replica *secret*: declaration, and the handlers of its permissions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from reside.model import secret_contract as names
from reside.model.secret_contract import SECRET_CONTRACT, is_name
from reside.replica import Replica
from reside.secrets import rpc
from reside.secrets.store import make_data, open_secrets

if TYPE_CHECKING:
    from reside.model.manifest import ContractManifest
    from reside.model.permissions import Grant, PermissionRef
    from reside.replica import Context


def declare(contract: ContractManifest) -> Replica:
    """Declare the replica; `contract` is the manifest of `secret.v1`."""
    replica = Replica(contract)
    replica.data(SECRET_CONTRACT)(make_data)
    replica.permission(SECRET_CONTRACT, names.READ_SECRET, granted=_reader_granted, revoked=_reader_revoked)
    replica.method(SECRET_CONTRACT, names.SET_SECRET)(rpc.set_secret)
    replica.method(SECRET_CONTRACT, names.DELETE_SECRET)(rpc.delete_secret)
    replica.method(SECRET_CONTRACT, names.LIST_SECRETS)(rpc.list_secrets)
    replica.main(_main)
    return replica


async def erase_left(context: Context) -> None:
    """Delete what an earlier process has left of former values, if it died."""
    secrets = await open_secrets(context)
    for name in secrets.names():
        async with secrets.transaction() as tx:
            await tx.run_exclusively(partial(secrets.erase_stale, name))


async def _reader_granted(context: Context, ref: PermissionRef, _grant: Grant) -> None:
    """Let an account read a secret. A permission on an impossible name has no effect."""
    name = ref.instance_id
    if name is not None and is_name(name):
        secrets = await open_secrets(context)
        async with secrets.transaction() as tx:
            await tx.run_exclusively(lambda: secrets.add_reader(name, ref.account))


async def _reader_revoked(context: Context, ref: PermissionRef, _grant: Grant) -> None:
    """Let an account read no later value: the read key is rotated."""
    name = ref.instance_id
    if name is not None and is_name(name):
        secrets = await open_secrets(context)
        async with secrets.transaction() as tx:
            await tx.run_exclusively(lambda: secrets.forget_unused(name))


async def _main(context: Context) -> None:
    await erase_left(context)
    await context.node.until_closed()
