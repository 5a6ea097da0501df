"""The methods of the contract `secret.v1`.

A value does not travel in a call: the caller writes it into a Jazz map that this replica can read, and names the map.
So it is encrypted on its way, and no log, trace or error of a call can contain it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from reside.jazz import CoId, InvalidContent, InvalidState, ValueDeleted, ValueNotFound, WrongKind
from reside.model.errors import Conflict, InvalidInput
from reside.model.secret_contract import (
    MANAGE_SECRETS,
    READ_SECRET,
    STATE,
    VALUE,
    WRITE_SECRET,
    ListedSecret,
    ListedSecrets,
    NamedSecret,
    NamedState,
    NoMembers,
    SecretState,
    SetSecret,
    check_value,
    is_name,
)
from reside.secrets.store import open_secrets

if TYPE_CHECKING:
    from reside.jazz import Node
    from reside.replica import Call
    from reside.secrets.store import Secrets


async def set_secret(call: Call, body: SetSecret) -> NamedState:
    """Make the value that the caller has handed over the value of a secret."""
    _require_write(call, body.name)
    value = await read_handed(call.context.node, body.value, call.account)
    secrets = await open_secrets(call.context)

    async def write() -> NamedState:
        found = await secrets.find(body.name)
        before = None if found is None else SecretState.parse(found.get(STATE))
        if before is not None and before.handed == body.value:
            return NamedState(name=body.name, version=before.version)  # the call is repeated
        _check_version(body, before)
        written = await secrets.write(body.name, value, by=call.account, handed=body.value)
        return NamedState(name=body.name, version=written.version)

    async with secrets.transaction() as tx:
        _require_write(call, body.name)  # again: it may have been revoked while this waited for the lock
        return await tx.run_exclusively(write)


async def delete_secret(call: Call, body: NamedSecret) -> NamedState:
    """Delete the value of a secret."""
    _require_write(call, body.name)
    secrets = await open_secrets(call.context)
    async with secrets.transaction() as tx:
        _require_write(call, body.name)
        deleted = await tx.run_exclusively(lambda: secrets.delete(body.name, by=call.account))
    if deleted is None:
        raise InvalidInput(f"secret {body.name} has no value: see `reside secret list`")
    return NamedState(name=body.name, version=deleted.version)


async def list_secrets(call: Call, _body: NoMembers) -> ListedSecrets:
    """Return the secrets that the caller may read or set, and who else may; all of them for their managers."""
    secrets = await open_secrets(call.context)
    readers, writers, managers = _holders(secrets)
    names = {*secrets.names(), *readers, *writers}
    if call.account not in managers:
        names = {name for name in names if call.account in readers.get(name, set()) | writers.get(name, set())}
    states = await asyncio.gather(*(secrets.state(name) for name in sorted(names)))
    return ListedSecrets(
        secrets=tuple(
            _listed(name, state, readers.get(name, set()), writers.get(name, set()) | managers)
            for name, state in zip(sorted(names), states, strict=True)
        )
    )


async def read_handed(node: Node, handed: str, account: str) -> str:
    """Return the value that an account has handed over in a map.

    Only what the account itself wrote counts, in the first transaction of the map. Otherwise a writer could name the
    map with the value of another secret, which this replica can read, and have it copied into a secret of his own.

    Raises:
        InvalidInput: the map can't be read, was written by another account, or has no value that a secret can have.
    """
    try:
        found = await node.load_map(CoId(handed))
    except (ValueDeleted, ValueNotFound, WrongKind, InvalidContent, InvalidState):
        raise InvalidInput(f"the value can't be read in {handed}: write it again") from None
    history = found.history(VALUE)
    if not history:
        raise InvalidInput(f"{handed} has no value that {node.account_id} can read: make that account a reader of it")
    first = history[0]
    if first.by != account:
        raise InvalidInput(f"the value in {handed} was not written by {account}: write your own")
    return check_value(first.value)


def _require_write(call: Call, name: str) -> None:
    if not call.has(MANAGE_SECRETS):
        call.require(WRITE_SECRET, name)


def _check_version(body: SetSecret, before: SecretState | None) -> None:
    now = 0 if before is None else before.version
    if body.replaces is not None and body.replaces != now:
        raise Conflict(f"secret {body.name} was changed meanwhile (it has version {now} now): look at it again")


def _holders(secrets: Secrets) -> tuple[dict[str, set[str]], dict[str, set[str]], set[str]]:
    """Return who may read and who may set each secret, by name, and who manages all: what is in force."""
    readers: dict[str, set[str]] = {}
    writers: dict[str, set[str]] = {}
    managers: set[str] = set()
    for permission in secrets.permissions():
        ref = permission.ref
        if not permission.in_force:
            continue
        if ref.name == MANAGE_SECRETS and ref.instance_id is None:
            managers.add(ref.account)
        elif ref.instance_id is not None and is_name(ref.instance_id):
            held = {READ_SECRET: readers, WRITE_SECRET: writers}.get(ref.name)
            if held is not None:
                held.setdefault(ref.instance_id, set()).add(ref.account)
    return readers, writers, managers


def _listed(name: str, state: SecretState | None, readers: set[str], writers: set[str]) -> ListedSecret:
    has_value = state is not None and state.value is not None
    return ListedSecret(
        name=name,
        version=state.version if state is not None and has_value else None,
        at=state.at if state is not None and has_value else None,
        by=state.by if state is not None and has_value else None,
        readers=tuple(sorted(readers)),
        writers=tuple(sorted(writers)),
    )
