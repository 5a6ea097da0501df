"""`reside permission`: grant permissions to accounts, revoke them, decide on those that replicas ask for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reside.cli import config, listing, output
from reside.cli.grantees import Names, parse_params, read_names, super_admin_orders
from reside.cli.listing import Column, ListOptions
from reside.cli.session import Session, open_session
from reside.cli.shared_options import with_options
from reside.model.alpha_contract import (
    APPROVE_PERMISSION,
    DIRECT_GRANTS,
    EXPLAIN_PERMISSION,
    GRANT_PERMISSION,
    MANAGE_PERMISSIONS,
    REJECT_PERMISSION,
    REVOKE_PERMISSION,
)
from reside.model.entities import DirectGrant
from reside.model.errors import InvalidInput, NotAllowed

if TYPE_CHECKING:
    from collections.abc import Iterable

app = typer.Typer(no_args_is_help=True)

COLUMNS = (
    Column("account"),
    Column("permission"),
    Column("of"),
    Column("params", wide=True),
    Column("type", wide=True),
    Column("status", style=listing.status_style),
    Column("by"),
    Column("at", short=listing.age_of_text, header="age"),
    Column("reason"),
)
AccountName = Annotated[str, typer.Argument(metavar="ACCOUNT", help="Replica, account of yours, or account id.")]
ReplicaName = Annotated[str, typer.Argument(metavar="REPLICA", help="Replica that grants the permission.")]
PermissionName = Annotated[str, typer.Argument(metavar="PERMISSION", help="Name of the permission.")]
Reason = Annotated[str, typer.Option(help="Why; it is stored with the decision.")]
ContextName = Annotated[str | None, typer.Option("--context", help="Context; the current one if not given.")]
Format = Annotated[output.Output, typer.Option("--output", "-o", help="Format of the output.")]


@dataclass(frozen=True)
class PermissionOptions:
    """What names a permission besides its replica and its name."""

    contract: Annotated[
        str | None, typer.Option(help="Identity of the contract; needed if the replica implements several.")
    ] = None
    instance: Annotated[str | None, typer.Option(help="Instance id, for a permission that has instances.")] = None
    context: ContextName = None

    def members(self, names: Names, account: str, replica: str, permission: str) -> dict[str, Any]:
        """Return the body of a call about this permission."""
        order = names.order(replica, self.contract, permission)
        return order | {"account": names.account(account), "instanceId": self.instance}


@app.command("grant")
@with_options(PermissionOptions)
def grant(
    account: AccountName,
    replica: Annotated[str | None, typer.Argument(help="Replica that grants the permission.")] = None,
    permission: Annotated[str | None, typer.Argument(help="Name of the permission.")] = None,
    *,
    super_admin: Annotated[bool, typer.Option("--super-admin", help="All permissions of a super admin.")] = False,
    params: Annotated[str | None, typer.Option(help="Params as JSON.")] = None,
    reason: Reason = "",
    options: PermissionOptions,
) -> None:
    """Grant a permission of a replica to an account; a second grant replaces the params."""
    if super_admin == (replica is not None) or (replica is None) != (permission is None):
        raise InvalidInput("name a replica and a permission, or give --super-admin alone")

    async def run() -> None:
        async with open_session(config.load(), options.context, calls_alpha=True) as session:
            names = await read_names(session)
            if replica is None or permission is None:
                bodies = [order | {"account": names.account(account)} for order in super_admin_orders()]
            else:
                bodies = [options.members(names, account, replica, permission) | {"params": parse_params(params)}]
            for body in bodies:
                await session.call(GRANT_PERMISSION, body | {"reason": reason})

    asyncio.run(run())
    output.console.print(f"{account} has {permission or 'all permissions of a super admin'}", soft_wrap=True)


@app.command("revoke")
@with_options(PermissionOptions)
def revoke(
    account: AccountName,
    replica: ReplicaName,
    permission: PermissionName,
    *,
    reason: Reason = "",
    options: PermissionOptions,
) -> None:
    """Revoke a permission that was granted directly. What a version of a replica requires ends with that version."""
    _call(REVOKE_PERMISSION, options, (account, replica, permission), {"reason": reason})
    output.console.print(f"{permission} of {account} is revoked", soft_wrap=True)


@app.command("approve")
@with_options(PermissionOptions)
def approve(
    account: AccountName,
    replica: ReplicaName,
    permission: PermissionName,
    *,
    params: Annotated[str | None, typer.Option(help="Params as JSON, as the replica asks for them.")] = None,
    reason: Reason = "",
    options: PermissionOptions,
) -> None:
    """Grant a permission that a replica has asked for, with the params that it asks for."""
    more = {"reason": reason, "params": parse_params(params)}
    _call(APPROVE_PERMISSION, options, (account, replica, permission), more)
    output.console.print(f"{account} has {permission}", soft_wrap=True)


@app.command("reject")
@with_options(PermissionOptions)
def reject(
    account: AccountName,
    replica: ReplicaName,
    permission: PermissionName,
    *,
    reason: Annotated[str, typer.Option(help="Why; the replica sees it.")],
    options: PermissionOptions,
) -> None:
    """Refuse a permission that a replica has asked for; it is not asked about again."""
    _call(REJECT_PERMISSION, options, (account, replica, permission), {"reason": reason})
    output.console.print(f"{permission} of {account} is rejected", soft_wrap=True)


@app.command("explain")
@with_options(PermissionOptions)
def explain(
    account: AccountName,
    replica: ReplicaName,
    permission: PermissionName,
    *,
    format_: Format = output.Output.table,
    options: PermissionOptions,
) -> None:
    """Explain why an account has a permission, or why it lacks it."""
    found = _call(EXPLAIN_PERMISSION, options, (account, replica, permission), {})
    if format_ is not output.Output.table:
        output.record(found, format_)
        return
    for line in explained(found):
        output.console.print(output.printable(line), markup=False, highlight=False, soft_wrap=True)


def explained(found: dict[str, Any]) -> Iterable[str]:
    """Yield the lines that explain a permission to people."""
    expected, current = found["expected"] or {}, found["current"] or {}
    if found["inForce"]:
        yield "in force"
    elif expected.get("granted"):
        yield "not in force yet: the replica has not carried it out, see its log"
    else:
        is_defined = found.get("isDefined", True)  # an Alpha of an earlier release does not tell
        yield "not granted" if is_defined else "not granted, and the contract has no such permission: check the name"
        if current.get("granted"):
            yield "revoked; the replica has not carried out the revocation yet"
    for source in found["sources"]:
        if source["type"] == "static":
            yield f"required by version {source['version']} of {source['replica']}, requirement {source['requirement']}"
        else:
            decided = source.get("decided") or source.get("asked") or {}
            why = f": {decided['reason']}" if decided.get("reason") else ""
            yield f"{source['status']} ({source['type']}) by {decided.get('by')} at {_time(decided.get('at'))}{why}"
    if expected.get("granted") and not found["sources"]:
        yield "written into the control block by an account with rcb:manage:all, such as the user manager"


@app.command("list")
@with_options(ListOptions)
def list_permissions(
    account: Annotated[str | None, typer.Argument(help="Only of this account.")] = None,
    *,
    pending: Annotated[bool, typer.Option("--pending", help="Only those that wait for a decision.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Also those that were rejected or revoked.")] = False,
    options: ListOptions,
    context: ContextName = None,
) -> None:
    """List the permissions that people have granted and that replicas have asked for."""
    shown = {"pending"} if pending else {"pending", "approved"} | ({"rejected", "revoked"} if every else set())

    async def run() -> list[dict[str, Any]]:
        async with open_session(config.load(), context) as session:
            names = await read_names(session)
            only = None if account is None else names.account(account)
            return [
                _row(names, grantee, found)
                for grantee, found in await direct_grants(session, only)
                if found.status in shown
            ]

    listing.show(asyncio.run(run()), COLUMNS, options, name="permission", empty="no permission was granted directly")


@app.command("clear")
def clear(account: AccountName, *, reason: Reason = "", context: ContextName = None) -> None:
    """Revoke everything that was granted directly to an account."""

    async def run() -> int:
        async with open_session(config.load(), context) as session:
            only = (await read_names(session)).account(account)
            found = [grant for _, grant in await direct_grants(session, only) if grant.status == "approved"]
            for entry in found:
                members = entry.model_dump(by_alias=True, include={"replica", "contract", "permission", "instance_id"})
                await session.call(REVOKE_PERMISSION, members | {"account": only, "reason": reason})
            return len(found)

    output.console.print(f"{asyncio.run(run())} permissions of {account} are revoked", soft_wrap=True)


def _call(method: str, options: PermissionOptions, named: tuple[str, str, str], more: dict[str, Any]) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        async with open_session(config.load(), options.context, calls_alpha=True) as session:
            body = options.members(await read_names(session), *named) | more
            answer: dict[str, Any] = await session.call(method, body)
            return answer

    return asyncio.run(run())


async def direct_grants(session: Session, only: str | None) -> list[tuple[str, DirectGrant]]:
    """Read the direct grants of one account or of all.

    Raises:
        NotAllowed: this account may not read them.
    """
    index = await session.node.load_map(session.data[DIRECT_GRANTS])
    if index.group.my_role is None:
        raise NotAllowed(f"permissions can't be listed: the account needs {MANAGE_PERMISSIONS}")
    listed = {account: co_id for account, co_id in index.items() if only in (None, account)}
    maps = {account: await session.node.load_map(co_id) for account, co_id in sorted(listed.items())}
    return [(a, DirectGrant.model_validate(document)) for a, value in maps.items() for document in value.values()]


def _row(names: Names, account: str, found: DirectGrant) -> dict[str, Any]:
    decision = found.decided or found.asked
    return {
        "account": names.name_of(account),
        "accountId": account,
        "permission": ":".join(filter(None, (found.permission, found.instance_id))),
        "of": names.replica_name(found.replica),
        "contract": found.contract,
        "params": found.params or None,
        "type": found.request_type,
        "status": found.status,
        "by": None if decision is None else names.name_of(decision.by),
        "at": None if decision is None else _time(decision.at),
        "reason": None if decision is None else decision.reason,
    }


def _time(at_ms: int | None) -> str:
    return "" if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
