"""`reside replica logs`: what the pods of a replica wrote last, read by the Sentinel: it needs no Kubernetes here."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final

import typer
from pydantic import TypeAdapter

from reside.cli import config, following, output
from reside.cli.grantees import read_names
from reside.cli.operator_requests import open_operator
from reside.cli.session import open_session
from reside.jazz import AccountId
from reside.model.constants import SENTINEL_NAME
from reside.model.pod_logs import PodLog
from reside.model.sentinel_data import READ_LOGS, REPLICA, SHOW_LOGS, SINCE, TAIL, WAIT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from reside.cli.session import Session

Tail = Annotated[int, typer.Option(min=1, max=10_000, help="Lines to show of each pod.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Show what is written from then on, until interrupted.")]
Format = Annotated[output.Output, typer.Option("--output", "-o", help="Format of the output.")]

ANSWER_S: Final = 90.0
"""Seconds to wait for the Sentinel's answer to a request that follows logs: another process may have to take over."""


def logs(
    name: Annotated[str, typer.Argument(help="Name of the replica.")],
    *,
    follow: Follow = False,
    tail: Tail = 200,
    format_: Format = output.Output.table,
    context: Annotated[str | None, typer.Option("--context", help="Context; the current one if not given.")] = None,
) -> None:
    """Show what the pods of a replica wrote last. It needs the permission logs:read on kubernetes-sentinel."""
    printer = Printer(format_)
    if follow:
        asyncio.run(_follow(context, name, tail, printer))
        return
    printer.show(asyncio.run(read(context, name, tail)))


async def read(context: str | None, name: str, tail: int) -> list[PodLog]:
    """Ask the Sentinel for the pods of a replica, and for the last lines of each one's log.

    Raises:
        NotAllowed: this account lacks `logs:read`.
        ResideError: the replica does not exist, or has no pods.
    """
    async with open_session(config.load(), context) as session:
        names = await read_names(session)
        names.replica(name)
        sentinel = AccountId(names.account(SENTINEL_NAME))
        operator = await open_operator(session.node, sentinel, READ_LOGS)
        answer = await operator.ask(SHOW_LOGS, {REPLICA: name, TAIL: tail})
        return TypeAdapter(list[PodLog]).validate_json(answer.file)


async def _follow(context: str | None, name: str, tail: int, printer: Printer) -> None:
    async with open_session(config.load(), context) as session:
        async for found in followed(session, name, tail, output.warn):
            printer.show_more(found)


async def followed(
    session: Session, name: str, tail: int, report: Callable[[str], None]
) -> AsyncIterator[list[PodLog]]:
    """Yield what the pods of a replica have written and write from then on, until the replica is deleted.

    Args:
        session: a session with the cluster.
        name: name of the replica.
        tail: lines of each pod to begin with.
        report: called with a sentence if the logs can't be read for now.

    Raises:
        NotAllowed: this account lacks `logs:read`.
        InvalidInput: the replica does not exist, or does not exist any more.
    """
    names = await read_names(session)
    names.replica(name)
    operator = await open_operator(session.node, AccountId(names.account(SENTINEL_NAME)), READ_LOGS)

    async def read_more(since: Mapping[str, str], lines: int, wait_s: int) -> list[PodLog]:
        members = {REPLICA: name, TAIL: lines, SINCE: dict(since), WAIT: wait_s}
        answer = await operator.ask(SHOW_LOGS, members, within_s=ANSWER_S)
        found = TypeAdapter(list[PodLog]).validate_json(answer.file)
        if not found:
            (await read_names(session)).replica(name)
        return found

    async for found in following.follow(read_more, tail, report):
        yield found


@dataclass
class Printer:
    """Prints logs; of each pod it says only once what is missing.

    Attributes:
        format_: format of the output.
    """

    format_: output.Output
    _pods: set[str] = field(default_factory=set)
    _said: set[str] = field(default_factory=set)

    def show(self, found: Sequence[PodLog]) -> None:
        """Print logs."""
        if self.format_ is output.Output.json:
            output.print_json([each.model_dump(mode="json", exclude={"cursor"}) for each in found])
            return
        self.warn(found)
        sys.stdout.writelines(f"{line}\n" for line in lines(found, named=len(found) > 1))

    def show_more(self, found: Sequence[PodLog]) -> None:
        """Print what has been written since; as JSON one line for each pod that has written something."""
        written = [each for each in found if each.text]
        self._pods |= {each.pod for each in found}
        if self.format_ is output.Output.json:
            documents = (each.model_dump(mode="json", exclude={"cursor"}) for each in written)
            sys.stdout.writelines(f"{json.dumps(each)}\n" for each in documents)
        else:
            self.warn(found, follows=True)
            sys.stdout.writelines(f"{line}\n" for line in lines(written, named=len(self._pods) > 1))
        sys.stdout.flush()

    def warn(self, found: Sequence[PodLog], *, follows: bool = False) -> None:
        """Say what is missing.

        Args:
            found: logs.
            follows: whether more of them is read; then a pod that is about to start lacks nothing.
        """
        found = [each for each in found if not (follows and is_starting(each))]
        for each in found:
            for note in notes(each):
                if note not in self._said or (each.is_cut and each.text):
                    output.warn(note)
        self._said = {note for each in found for note in notes(each)}


def is_starting(log: PodLog) -> bool:
    """Return whether a pod has no log yet only because it is about to start."""
    return log.state is not None and log.state.phase == "Pending" and log.state.problem is None


def notes(log: PodLog) -> Iterator[str]:
    """Yield what is missing in the log of a pod."""
    if log.error is not None:
        yield f"{log.pod}: {log.error}"
    if log.is_cut:
        yield f"{log.pod}: earlier lines are left out, because the logs are large"


def lines(logs: Sequence[PodLog], *, named: bool) -> Iterator[str]:
    """Yield the lines of all logs; each names its pod if `named` is set."""
    for log in logs:
        prefix = f"{log.pod} | " if named else ""
        for line in log.text.removesuffix("\n").split("\n") if log.text else ():
            yield prefix + "\t".join(map(output.printable, line.removesuffix("\r").split("\t")))
