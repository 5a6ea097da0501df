"""Grant and revoke permissions of accounts directly: by people, or because a running replica has asked for one.

A direct grant is checked as the permissions of a load request are: the granting replica implements the contract, and
the contract defines the permission and accepts its params. Who decided, when and why is stored with it.

Invariants: all writes are made under Alpha's lock. `expected` in the control block is written in the same step, so a
revocation counts when the call returns. A replica that was refused is not asked about again: people may still grant it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from reside.alpha import contracts, records
from reside.alpha.contract import packaged
from reside.alpha.granting import direct
from reside.alpha.granting.sync import sync_account
from reside.model.constants import ALPHA_CONTRACT
from reside.model.entities import Decision, DirectGrant
from reside.model.errors import Conflict, InvalidInput, NotAllowed
from reside.model.identities import resolved
from reside.model.manifest import RequiredPermission
from reside.model.permission_checks import check_permission

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reside.alpha.state import Alpha

MAX_PENDING: Final = 32
"""Permissions that one account may ask for before people have decided."""


@dataclass(frozen=True)
class Order:
    """The permission of an account that a call is about; `replica` is the id of the replica that grants it."""

    account: str
    replica: int
    contract: str
    permission: str
    instance_id: str | None = None
    params: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Resolve the name of the contract."""
        object.__setattr__(self, "contract", resolved(self.contract))


async def grant(alpha: Alpha, order: Order, by: str, reason: str) -> DirectGrant:
    """Grant a permission to an account; an earlier direct grant of it gets the new params.

    Raises:
        InvalidInput: the account or the replica does not exist, or the permission is not one of the contract.
    """
    checked = await _checked(alpha, order)
    await direct.check_exists(alpha.data, order.account)
    return await _change(alpha, order.account, checked, lambda found: _granted(alpha, checked, found, by, reason))


async def approve(alpha: Alpha, order: Order, by: str, reason: str) -> DirectGrant:
    """Grant a permission that an account has asked for, with the params that the approver saw.

    Raises:
        Conflict: the account does not ask for this permission, or asks for other params now.
    """

    def decided(found: DirectGrant | None) -> DirectGrant:
        pending = _pending(found, order)
        if pending.params != order.params:
            raise Conflict(f"{order.account} asks for {order.permission} with other params now: look at them again")
        return pending.model_copy(update={"status": "approved", "decided": _decision(alpha, by, reason)})

    return await _change(alpha, order.account, await _checked(alpha, order), decided)


async def reject(alpha: Alpha, order: Order, by: str, reason: str) -> DirectGrant:
    """Refuse a permission that an account has asked for.

    Raises:
        Conflict: the account does not ask for this permission.
    """

    def decided(found: DirectGrant | None) -> DirectGrant:
        update = {"status": "rejected", "decided": _decision(alpha, by, reason)}
        return _pending(found, order).model_copy(update=update)

    return await _change(alpha, order.account, _named(order), decided)


async def revoke(alpha: Alpha, order: Order, by: str, reason: str) -> DirectGrant:
    """Revoke a direct grant. A replica keeps what its version requires: only another version changes that.

    Raises:
        Conflict: the account has no such direct grant.
    """

    def decided(found: DirectGrant | None) -> DirectGrant:
        if found is None or found.status != "approved":
            raise Conflict(
                f"{order.account} has no direct grant of {order.permission}: what a version of a replica requires ends "
                "with that version (see `reside permission explain`)"
            )
        return found.model_copy(update={"status": "revoked", "decided": _decision(alpha, by, reason)})

    return await _change(alpha, order.account, _named(order), decided)


async def ask(alpha: Alpha, order: Order, reason: str) -> DirectGrant:
    """Ask for a permission, as the account of the order; return what is stored of it, decided or not.

    Raises:
        InvalidInput: the permission is not one of the contract.
        NotAllowed: the account is not that of a replica.
        Conflict: too many of its permissions wait for a decision.
    """
    if order.account not in alpha.data.replicas_by_account:
        raise NotAllowed("only replicas may ask for permissions; people ask an administrator")
    checked = await _checked(alpha, order)

    def asked(found: DirectGrant | None) -> DirectGrant:
        is_settled = found is not None and found.status in ("rejected", "revoked")
        if found is not None and (is_settled or found.params == checked.params):
            return found
        return checked.model_copy(update={"asked": _decision(alpha, order.account, reason)})

    waiting = [g for g in (await direct.read_all(alpha.data, order.account)).values() if g.status == "pending"]
    _check_pending(waiting, checked)
    return await _change(alpha, order.account, checked, asked)


async def write_manual(alpha: Alpha, account: str, orders: Iterable[Order], reason: str) -> None:
    """Grant permissions to an account in its own name, without checks. The caller holds Alpha's lock."""
    found = await direct.read_all(alpha.data, account)
    granted = [_granted(alpha, order_, found.get(order_.key), account, reason) for order_ in map(_named, orders)]
    await direct.write(alpha.data, account, *granted)
    await sync_account(alpha, account)


def _named(order: Order) -> DirectGrant:
    """Return the order as a grant that waits for a decision."""
    return DirectGrant(
        request_type="dynamic",
        status="pending",
        replica=order.replica,
        contract=order.contract,
        permission=order.permission,
        instance_id=order.instance_id,
        params=order.params,
    )


async def _checked(alpha: Alpha, order: Order) -> DirectGrant:
    """Check that the replica can grant the permission, and return it with its instance."""
    name, implemented = await _granting(alpha, order.replica)
    manifest = packaged(order.contract) or await contracts.find_manifest(alpha.data, order.contract)
    if order.contract not in implemented or manifest is None:
        known = ", ".join(implemented) or "no contract"
        raise InvalidInput(f"replica {name} does not implement {order.contract}; it implements {known}")
    asked = RequiredPermission(name=order.permission, instance_id=order.instance_id, params=order.params)
    instance = check_permission(f"replica {name}", asked, manifest)
    return _named(order).model_copy(update={"instance_id": instance})


async def _granting(alpha: Alpha, number: int) -> tuple[str, tuple[str, ...]]:
    """Return the name of a replica and the contracts that it implements; Alpha's own before Alpha is loaded."""
    record = await records.find_active(alpha.data, number)
    if record is not None and record.value.current_version is not None:
        version = record.value.version(record.value.current_version)
        return record.value.name, tuple(version.implementations.values())
    if number == alpha.context.rcb.number:
        return alpha.context.name, (resolved(ALPHA_CONTRACT),)
    raise InvalidInput(f"replica {number} does not exist: see `reside replica list`")


async def _change(
    alpha: Alpha, account: str, named: DirectGrant, decided: Callable[[DirectGrant | None], DirectGrant]
) -> DirectGrant:
    """Replace one direct grant by what `decided` makes of it, and write what is due then."""

    async def write() -> DirectGrant:
        present = (await direct.read_all(alpha.data, account)).get(named.key)
        changed = decided(present)
        if changed != present:
            await direct.write(alpha.data, account, changed)
            await sync_account(alpha, account)
        return changed

    async with alpha.transaction() as tx:
        return await tx.run_exclusively(write)


def _granted(alpha: Alpha, checked: DirectGrant, found: DirectGrant | None, by: str, reason: str) -> DirectGrant:
    if found is not None and found.status == "approved" and found.params == checked.params:
        return found
    asked = found.asked if found is not None else None
    kind = "manual" if asked is None else "dynamic"
    update = {"request_type": kind, "status": "approved", "asked": asked, "decided": _decision(alpha, by, reason)}
    return checked.model_copy(update=update)


def _pending(found: DirectGrant | None, order: Order) -> DirectGrant:
    if found is None or found.status != "pending":
        state = "does not ask for it" if found is None else f"has it as {found.status}"
        raise Conflict(f"{order.account} {state}: {order.permission} of replica {order.replica} waits for no decision")
    return found


def _check_pending(waiting: list[DirectGrant], checked: DirectGrant) -> None:
    if len(waiting) >= MAX_PENDING and checked.key not in {grant.key for grant in waiting}:
        raise Conflict(f"{len(waiting)} permissions wait for a decision: ask for more when people have decided")


def _decision(alpha: Alpha, by: str, reason: str) -> Decision:
    return Decision(by=by, at=alpha.node.now_ms(), reason=reason)
