"""`reside state`: what the Sentinel keeps of stacks: who owns them, and the states of Pulumi's engine."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from reside.cli import config, output
from reside.cli.grantees import read_names
from reside.cli.operator_requests import open_operator
from reside.cli.prompt import confirm
from reside.cli.session import open_session
from reside.common.files import write_private
from reside.jazz import AccountId
from reside.model.constants import SENTINEL_NAME
from reside.model.errors import ResideError
from reside.model.sentinel_data import (
    ABANDON,
    DRY_RUN,
    EXPORT_STATE,
    FAILED,
    FROM,
    IMPORT_STATE,
    MANAGE_STATE,
    MIGRATE_STATES,
    PRUNE_STATES,
    REASSIGN,
    REASSIGN_STACKS,
    STACK,
    STACKS,
    TO,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from reside.cli.grantees import Names
    from reside.cli.operator_requests import Answer, Operator

    class Asks(Protocol):
        """An operator who asks the Sentinel; see `Operator.ask`."""

        async def ask(self, action: str, members: dict[str, Any]) -> Answer:
            """Request an action, and return its answer."""


app = typer.Typer(no_args_is_help=True)

ContextName = Annotated[str | None, typer.Option("--context", help="Context; the current one if not given.")]
AutoApprove = Annotated[bool, typer.Option("--auto-approve", help="Do it without asking.")]
StackName = Annotated[str, typer.Argument(metavar="STACK", help="Name of the stack: that of its replica.")]
AccountText = "Account id, or the name of a replica, of an account of yours, or of a user."


@app.command("reassign")
def reassign(
    stacks: Annotated[list[str] | None, typer.Argument(metavar="[STACK]...", help="All of them if not given.")] = None,
    *,
    origin: Annotated[str, typer.Option("--from", metavar="ACCOUNT", help=f"Present owner. {AccountText}")],
    target: Annotated[str, typer.Option("--to", metavar="ACCOUNT", help=f"New owner. {AccountText}")],
    auto_approve: AutoApprove = False,
    context: ContextName = None,
) -> None:
    """Give stacks of one account to another one. No object is deleted or created again."""

    async def run() -> None:
        async with _operator(context, REASSIGN) as (operator, names):
            before, after = names.account(origin), names.account(target)
            members = {FROM: before, TO: after, STACKS: list(stacks or ())}
            preview = await operator.ask(REASSIGN_STACKS, {**members, DRY_RUN: True})
            found = preview.members[STACKS]
            given = to_give(found)
            _say_all(found)
            if not given:
                raise ResideError(f"no stack of {before} can be given to {after}")
            output.line(
                f"from then on, only what {after} declares counts, and the secret values of these stacks are its, too"
            )
            if not (auto_approve or await confirm(f"Give {len(given)} stacks to {after}?")):
                raise ResideError("nothing was reassigned")
            done = (await operator.ask(REASSIGN_STACKS, {**members, STACKS: given})).members[STACKS]
            _say_all(done)
            if left := [name for name in given if name not in to_give(done)]:
                raise ResideError(f"these stacks were not reassigned: {', '.join(left)}")

    asyncio.run(run())


@app.command("export")
def export(
    stack: StackName,
    *,
    file: Annotated[Path | None, typer.Option("--file", help="File to write; standard output if not given.")] = None,
    context: ContextName = None,
) -> None:
    """Export the state of a stack, as `pulumi stack export` does. Secrets in it stay encrypted."""

    async def run() -> None:
        async with _operator(context, MANAGE_STATE) as (operator, _):
            done = await operator.ask(EXPORT_STATE, {STACK: stack})
            if file is None:
                sys.stdout.write(done.file.decode())
                return
            write_private(file, done.file)
            output.line(f"{file} has the state of stack {stack}, with {done.members['objects']} objects")

    asyncio.run(run())


@app.command("import")
def import_state(
    stack: StackName,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A state that was exported.")],
    *,
    auto_approve: AutoApprove = False,
    context: ContextName = None,
) -> None:
    """Replace the state of a stack by an exported one. The stack is then applied, which refreshes the state."""
    content = file.read_bytes()

    async def run() -> None:
        async with _operator(context, MANAGE_STATE) as (operator, _):
            output.line(f"objects in {file} that stack {stack} does not declare are deleted by its next apply")
            if not (auto_approve or await confirm(f"Replace the state of stack {stack}?")):
                raise ResideError("nothing was imported")
            done = await operator.ask(IMPORT_STATE, {STACK: stack}, file=content)
            output.line(f"the state of stack {stack} has {done.members['objects']} objects now, and is being refreshed")

    asyncio.run(run())


@app.command("prune")
def prune(*, auto_approve: AutoApprove = False, context: ContextName = None) -> None:
    """Show the states that belong to no stack, and remove them. No object is deleted."""

    async def run() -> None:
        async with _operator(context, MANAGE_STATE) as (operator, _):
            found = (await operator.ask(PRUNE_STATES, {DRY_RUN: True})).members[STACKS]
            if not found:
                output.line("each state belongs to a stack")
                return
            _say_all(found)
            if not (auto_approve or await confirm("Remove these states?")):
                raise ResideError("nothing was removed")
            done = (await operator.ask(PRUNE_STATES, {})).members[STACKS]
            output.line(f"{len(done)} states were removed")

    asyncio.run(run())


@app.command("migrate")
def migrate(
    *,
    abandon: Annotated[
        bool,
        typer.Option(
            "--abandon",
            help="Give these states up, because the backend that has them can't be reached any more. The stacks adopt "
            "their live objects.",
        ),
    ] = False,
    auto_approve: AutoApprove = False,
    context: ContextName = None,
) -> None:
    """Show the states that are in another backend than the settings name, and move them to it. No object changes."""

    async def run() -> None:
        async with _operator(context, MANAGE_STATE) as (operator, _):
            found = (await operator.ask(MIGRATE_STATES, {DRY_RUN: True})).members[STACKS]
            if not found:
                output.line("each state is where the settings of the Sentinel say")
                return
            _say_all({name: f"in {place}" for name, place in found.items()})
            if not (auto_approve or await confirm("Give these states up?" if abandon else "Move these states?")):
                raise ResideError("nothing was moved; the next apply of each stack moves its state")
            if failed := await move_all(operator, list(found), abandon=abandon):
                raise ResideError(f"these states were not moved: {', '.join(failed)}")

    asyncio.run(run())


async def move_all(operator: Asks, names: list[str], *, abandon: bool = False) -> list[str]:
    """Have the Sentinel move these states, as many at a time as it answers in time; return those that failed."""
    left, failed = names, []
    while left:
        done = (await operator.ask(MIGRATE_STATES, {STACKS: left, ABANDON: abandon})).members[STACKS]
        _say_all(done)
        failed += [name for name, text in done.items() if text.startswith(FAILED)]
        left = [name for name in left if name not in done] if done else []  # the others are where they should be
    return failed


def to_give(outcomes: Mapping[str, str]) -> list[str]:
    """Return the stacks that the Sentinel gives, or has given, to the new owner."""
    return [name for name, text in outcomes.items() if not text.startswith(("refused:", FAILED))]


@asynccontextmanager
async def _operator(context: str | None, permission: str) -> AsyncIterator[tuple[Operator, Names]]:
    async with open_session(config.load(), context) as session:
        names = await read_names(session)
        sentinel = AccountId(names.account(SENTINEL_NAME))
        yield await open_operator(session.node, sentinel, permission), names


def _say_all(outcomes: Mapping[str, Any]) -> None:
    for name, text in outcomes.items():
        output.line(f"  {name}: {text}")
