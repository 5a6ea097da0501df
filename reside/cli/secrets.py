"""`reside secret`: named values that the replica *secret* keeps for those who may read and set them.

A value is never an argument, so it is in no history of a shell and in no list of processes. It travels in Jazz,
encrypted for its readers, and `get` alone prints it.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path  # noqa: TC003 - typer reads the annotation
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from reside.cli import config, listing, output
from reside.cli.grantees import Names, read_names
from reside.cli.listing import Column, ListOptions
from reside.cli.prompt import confirm
from reside.cli.secret_input import edited, read_given
from reside.cli.session import open_session, replica_of
from reside.cli.shared_options import with_options
from reside.jazz import AccountId
from reside.model import secret_contract
from reside.model.endpoints import rpc_path
from reside.model.errors import AnswerLost, InvalidInput
from reside.model.identities import resolved
from reside.model.secret_contract import SECRET_CONTRACT, SECRET_IDENTITY, check_name
from reside.replica.client import call_method
from reside.replica.profile import load_profile
from reside.replica.secrets import SecretReader, handed_over

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from reside.cli.replicas import Row
    from reside.jazz import Node
    from reside.replica.secrets import ReadSecret

app = typer.Typer(no_args_is_help=True)

_SHOWN = 2
"""Accounts that a cell names; the others are counted."""
_Result = TypeVar("_Result")


def few(names: str) -> str:
    """Return the first names of a list as text, and how many more there are. Accounts without a name are short."""
    listed = names.split(", ")
    shown = ", ".join(listing.short_id(name) for name in listed[:_SHOWN])
    more = len(listed) - _SHOWN
    return shown if more <= 0 else f"{shown} +{more}"


COLUMNS = (
    Column("name"),
    Column("version"),
    Column("at", short=listing.age_of_text, header="age"),
    Column("by", wide=True),
    Column("readers", short=few),
    Column("writers", short=few),
)
SecretName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the secret.")]
ContextName = Annotated[str | None, typer.Option("--context", help="Context; the current one if not given.")]


@dataclass(frozen=True)
class Keeper:
    """The replica *secret* of a cluster, as the account of this command reaches it."""

    node: Node
    account: AccountId
    names: Names
    call: Callable[[str, dict[str, Any]], Awaitable[Any]]

    async def read(self, name: str) -> ReadSecret:
        """Return the value of a secret. The replica need not run for it.

        Raises:
            InvalidInput: the secret does not exist, or has no value.
            NotAllowed: this account may not read it.
        """
        group = (await load_profile(self.node, self.account)).group
        found = await SecretReader(self.node, group.id, name).read()
        if found is None:
            raise InvalidInput(f"secret {name} has no value: set it with `reside secret set {name}`")
        return found

    async def set(self, name: str, value: str, *, replaces: int | None = None) -> int:
        """Set a secret, and return its version.

        Args:
            name: name of the secret.
            value: the new value.
            replaces: the version that it replaces; another one is a conflict. None: any.
        """
        async with handed_over(self.node, self.account, value) as handed:
            body = {"name": name, "value": handed, "replaces": replaces}
            try:
                return int((await self.call(secret_contract.SET_SECRET, body))["version"])
            except AnswerLost as error:
                raise AnswerLost(f"{error}: see the age of {name} in `reside secret list`, then set it again") from None


@app.command("list")
@with_options(ListOptions)
def list_secrets(*, options: ListOptions, context: ContextName = None) -> None:
    """List secrets, and who may read and set each: those of this account, or all if it manages them."""

    async def run(keeper: Keeper) -> list[dict[str, Any]]:
        found = (await keeper.call(secret_contract.LIST_SECRETS, {}))["secrets"]
        return [_row(keeper.names, secret) for secret in found]

    rows = _run(context, run)
    if options.format_ is listing.Format.table:
        rows = [row | {key: ", ".join(row[key]) for key in ("readers", "writers")} for row in rows]
    listing.show(rows, COLUMNS, options, empty="no secret: set one with `reside secret set NAME`")


@app.command("get")
def get(name: SecretName, *, context: ContextName = None) -> None:
    """Write the value of a secret to standard output, and nothing else.

    Only a terminal gets a line break at the end. It gets no value with control characters, which it would obey.
    """
    check_name(name)
    value = _run(context, lambda keeper: keeper.read(name)).value
    if sys.stdout.isatty():
        if not all(c.isprintable() or c in "\n\t" for c in value):
            raise InvalidInput(f"the value of {name} has control characters: write it to a file, or to a pipe")
        value = value if value.endswith("\n") else f"{value}\n"
    sys.stdout.buffer.write(value.encode())
    sys.stdout.buffer.flush()


@app.command("set")
def set_secret(
    name: SecretName,
    source: Annotated[
        str | None, typer.Argument(metavar="-", help="`-` reads the value from standard input, to its end.")
    ] = None,
    *,
    from_file: Annotated[
        Path | None, typer.Option("--from-file", metavar="FILE", help="Read the value from a file.")
    ] = None,
    context: ContextName = None,
) -> None:
    """Set a secret: asks for the value without showing it, unless it comes from standard input or a file.

    The value is what was read, with a line break at its end if there is one. The value before is erased.
    """
    check_name(name)
    value = read_given(name, source, from_file)
    version = _run(context, lambda keeper: keeper.set(name, value))
    _say(f"secret {name} is set (version {version})")


@app.command("edit")
def edit(name: SecretName, *, context: ContextName = None) -> None:
    """Edit a secret in $VISUAL or $EDITOR, in a private folder that is removed afterwards.

    If the secret was set by somebody else meanwhile, it stays as it is.
    """
    check_name(name)
    found = _run(context, lambda keeper: keeper.read(name))
    value = edited(name, found.value)
    if value == found.value:
        _say(f"secret {name} is not changed")
        return
    version = _run(context, lambda keeper: keeper.set(name, value, replaces=found.version))
    _say(f"secret {name} is set (version {version})")


@app.command("delete")
def delete(
    name: SecretName,
    *,
    auto_approve: Annotated[bool, typer.Option("--auto-approve", help="Delete without asking.")] = False,
    context: ContextName = None,
) -> None:
    """Delete the value of a secret. Those who may read and set it still may."""
    check_name(name)

    async def run(keeper: Keeper) -> bool:
        if not (auto_approve or await confirm(f"Delete the value of {name}?")):
            return False
        await keeper.call(secret_contract.DELETE_SECRET, {"name": name})
        return True

    _say(f"secret {name} is deleted" if _run(context, run) else "nothing is deleted")


def find_keeper(rows: Sequence[Row]) -> Row:
    """Return the replica *secret* among the replicas of a cluster.

    Its image has the shipped identity: any other replica that implements its contract could collect values.

    Raises:
        InvalidInput: there is none.
    """
    for row in rows:
        if row["identity"] == resolved(SECRET_IDENTITY) and resolved(SECRET_CONTRACT) in row["implements"]:
            return row
    raise InvalidInput("the cluster has no replica for secrets: load replicas/secret (docs/secrets.md)")


def _run(context: str | None, command: Callable[[Keeper], Awaitable[_Result]]) -> _Result:
    async def run() -> _Result:
        async with open_keeper(context) as keeper:
            return await command(keeper)

    return asyncio.run(run())


@asynccontextmanager
async def open_keeper(context: str | None) -> AsyncIterator[Keeper]:
    """Connect to the cluster of a context, and find its replica *secret*."""
    loaded = config.load()
    cluster = loaded.cluster(loaded.context(context).cluster)
    async with open_session(loaded, context) as session:
        names = await read_names(session)
        row = find_keeper(names.replicas)
        name, account = str(row["name"]), AccountId(row["account"])

        async def call(method: str, body: dict[str, Any]) -> Any:
            async with replica_of(cluster, name) as endpoint:
                return await call_method(
                    session.http,
                    session.credentials,
                    endpoint=endpoint,
                    receiver=account,
                    path=rpc_path(name, SECRET_CONTRACT, method),
                    body=body,
                )

        yield Keeper(session.node, account, names, call)


def _row(names: Names, secret: dict[str, Any]) -> dict[str, Any]:
    at = secret["at"]
    return {
        "name": secret["name"],
        "version": secret["version"],
        "at": None if at is None else datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ"),
        "by": None if secret["by"] is None else names.name_of(secret["by"]),
        "readers": _named(names, secret["readers"]),
        "writers": _named(names, secret["writers"]),
    }


def _named(names: Names, accounts: Sequence[str]) -> list[str]:
    """Return the names of accounts in order, and after them the ids of those that have none."""
    return sorted((names.name_of(account) for account in accounts), key=lambda name: (name in accounts, name))


def _say(text: str) -> None:
    output.console.print(output.printable(text), markup=False, highlight=False, soft_wrap=True)
