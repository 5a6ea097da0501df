"""`reside user`: users by name and sets of permissions, which the replica *user manager* keeps."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reside.cli import config, listing, output
from reside.cli.grantees import Names, find_user_manager, parse_params, read_names
from reside.cli.listing import Column, ListOptions
from reside.cli.session import Session, open_session, replica_of
from reside.cli.shared_options import with_options
from reside.jazz import AccountId
from reside.model.endpoints import rpc_path
from reside.model.errors import InvalidInput
from reside.replica.client import call_method
from reside.users import contract
from reside.users.contract import USER_MANAGER_CONTRACT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from reside.cli.replicas import Row

app = typer.Typer(no_args_is_help=True)

UserName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the user.")]
USER_COLUMNS = (
    Column("name"),
    Column("account", short=listing.short_id),
    Column("sets", short=lambda sets: ", ".join(sorted(sets))),
    Column("permissions", short=lambda apart: str(len(apart)), header="apart"),
)
SET_COLUMNS = (Column("name"), Column("permissions"))
HOLDING_COLUMNS = (Column("user"), Column("permission"), Column("source"), Column("in force"))
SetName = Annotated[str, typer.Argument(metavar="SET", help="Name of the set.")]
Given = Annotated[
    str, typer.Argument(metavar="SET|REPLICA/PERMISSION", help='A set, or one permission: greeter/greet={"times":3}.')
]
Reason = Annotated[str, typer.Option(help="Why; it is stored.")]
ContextName = Annotated[str | None, typer.Option("--context", help="Context; the current one if not given.")]
Format = Annotated[output.Output, typer.Option("--output", "-o", help="Format of the output.")]


@dataclass(frozen=True)
class Manager:
    """The user manager of a cluster, and the names of its cluster."""

    session: Session
    names: Names
    row: Row
    endpoint: str

    async def call(self, method: str, **body: Any) -> Any:
        """Call a method of the user manager."""
        name = str(self.row["name"])
        return await call_method(
            self.session.http,
            self.session.credentials,
            endpoint=self.endpoint,
            receiver=AccountId(self.row["account"]),
            path=rpc_path(name, USER_MANAGER_CONTRACT, method),
            body=body,
        )


@app.command("add")
def add(
    name: UserName,
    account: Annotated[str, typer.Argument(metavar="ACCOUNT", help="Account of yours, or account id.")],
    *,
    reason: Reason = "",
    context: ContextName = None,
) -> None:
    """Give an account a name."""

    async def run(manager: Manager) -> None:
        await manager.call(contract.ADD_USER, account=manager.names.account(account), name=name, reason=reason)

    _run(context, run)
    _say(f"user {name} is added")


@app.command("rename")
def rename(
    name: UserName, new: Annotated[str, typer.Argument(metavar="NEW", help="New name.")], *, context: ContextName = None
) -> None:
    """Give a user another name."""
    _run(context, lambda manager: manager.call(contract.RENAME_USER, user=name, name=new))
    _say(f"user {name} is called {new}")


@app.command("remove")
def remove(name: UserName, *, context: ContextName = None) -> None:
    """Remove a user, and withdraw what it was given here."""
    _run(context, lambda manager: manager.call(contract.REMOVE_USER, user=name))
    _say(f"user {name} is removed")


@app.command("list")
@with_options(ListOptions)
def list_users(*, options: ListOptions, context: ContextName = None) -> None:
    """List users, and the sets that they have."""
    found = _run(context, lambda manager: manager.call(contract.LIST_USERS))["users"]
    listing.show(found, USER_COLUMNS, options, empty="no user: add one with `reside user add NAME ACCOUNT`")


@app.command("define")
def define(
    name: SetName,
    permissions: Annotated[
        list[str] | None,
        typer.Argument(metavar="REPLICA/PERMISSION", help='What it contains from now on: greeter/greet={"times":3}.'),
    ] = None,
    *,
    reason: Reason = "",
    context: ContextName = None,
) -> None:
    """Define what a set contains; its users get and lose what has changed."""

    async def run(manager: Manager) -> None:
        listed = [permission_of(manager.names, text) for text in permissions or ()]
        await manager.call(contract.DEFINE_SET, name=name, permissions=listed, reason=reason)

    _run(context, run)
    _say(f"the set {name} contains {', '.join(permissions or ()) or 'nothing'}")


@app.command("sets")
@with_options(ListOptions)
def sets(*, options: ListOptions, context: ContextName = None) -> None:
    """List sets, and what they contain."""

    async def run(manager: Manager) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await manager.call(contract.LIST_SETS))["sets"]
        if options.format_ is not listing.Format.table:
            return found
        return [
            {"name": each["name"], "permissions": ", ".join(_text(manager.names, p) for p in each["permissions"])}
            for each in found
        ]

    listing.show(_run(context, run), SET_COLUMNS, options, empty="no set: define one with `reside user define`")


@app.command("delete-set")
def delete_set(name: SetName, *, context: ContextName = None) -> None:
    """Delete a set that nobody has."""
    _run(context, lambda manager: manager.call(contract.DELETE_SET, name=name))
    _say(f"the set {name} is deleted")


@app.command("grant")
def grant(name: UserName, given: Given, *, reason: Reason = "", context: ContextName = None) -> None:
    """Give a set or one permission to a user."""
    _give(context, name, given, (contract.ASSIGN_SET, contract.GRANT_PERMISSION), reason)
    _say(f"user {name} has {given}")


@app.command("revoke")
def revoke(name: UserName, given: Given, *, reason: Reason = "", context: ContextName = None) -> None:
    """Take a set or one permission from a user."""
    _give(context, name, given, (contract.UNASSIGN_SET, contract.REVOKE_PERMISSION), reason)
    _say(f"user {name} does not have {given} any more")


@app.command("permissions")
@with_options(ListOptions)
def permissions(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Only of this user.")] = None,
    *,
    options: ListOptions,
    context: ContextName = None,
) -> None:
    """List which users have which permissions, from where, and whether they are in force."""

    async def run(manager: Manager) -> list[dict[str, Any]]:
        found = (await manager.call(contract.WHO_HAS, **({} if name is None else {"user": name})))["holdings"]
        return [_row(manager.names, holding) for holding in found]

    listing.show(_run(context, run), HOLDING_COLUMNS, options, name="user", empty="no user has a permission")


def permission_of(names: Names, text: str) -> dict[str, Any]:
    """Parse `REPLICA/PERMISSION` or `REPLICA/PERMISSION={params}` as bodies name a permission.

    Raises:
        InvalidInput: it has another form, or the replica does not exist or implements several contracts.
    """
    named, separator, params = text.partition("=")
    replica, slash, permission = named.partition("/")
    if not replica or not slash or not permission:
        raise InvalidInput(f"{text!r} is not REPLICA/PERMISSION, such as greeter/greet")
    return names.order(replica, None, permission) | {"params": parse_params(params if separator else None)}


def _give(context: str | None, name: str, given: str, methods: tuple[str, str], reason: str) -> None:
    of_set, of_permission = methods

    async def run(manager: Manager) -> None:
        if "/" in given:
            found = permission_of(manager.names, given)
            await manager.call(of_permission, user=name, permission=found, reason=reason)
        else:
            await manager.call(of_set, user=name, set=given, reason=reason)

    _run(context, run)


def _run(context: str | None, command: Callable[[Manager], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with _open(context) as manager:
            return await command(manager)

    return asyncio.run(run())


@asynccontextmanager
async def _open(context: str | None) -> AsyncIterator[Manager]:
    loaded = config.load()
    async with open_session(loaded, context) as session:
        names = await read_names(session)
        row = find_user_manager(names.replicas)
        if row is None:
            raise InvalidInput("the cluster has no user manager: load replicas/user-manager (docs/images.md)")
        cluster = loaded.cluster(loaded.context(context).cluster)
        async with replica_of(cluster, str(row["name"])) as endpoint:
            yield Manager(session, names, row, endpoint)


def _row(names: Names, holding: dict[str, Any]) -> dict[str, Any]:
    return {
        "user": holding["user"],
        "account": holding["account"],
        "permission": _text(names, holding["permission"]),
        "source": ", ".join(holding["sources"]),
        "in force": "yes" if holding["inForce"] else "no",
    }


def _text(names: Names, permission: dict[str, Any]) -> str:
    instance = permission.get("instanceId")
    return f"{names.replica_name(permission['replica'])}/{permission['permission']}{f':{instance}' if instance else ''}"


def _say(text: str) -> None:
    output.console.print(output.printable(text), markup=False, highlight=False, soft_wrap=True)
