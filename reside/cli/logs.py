"""`reside replica logs`: what the pods of a replica wrote last, read by the Sentinel: it needs no Kubernetes here."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import TypeAdapter

from reside.cli import config, output
from reside.cli.grantees import read_names
from reside.cli.operator_requests import open_operator
from reside.cli.session import open_session
from reside.jazz import AccountId
from reside.model.constants import SENTINEL_NAME
from reside.model.pod_logs import PodLog
from reside.model.sentinel_data import READ_LOGS, REPLICA, SHOW_LOGS, TAIL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def logs(
    name: Annotated[str, typer.Argument(help="Name of the replica.")],
    *,
    tail: Annotated[int, typer.Option(min=1, max=10_000, help="Lines to show of each pod.")] = 200,
    format_: Annotated[output.Output, typer.Option("--output", "-o", help="Format of the output.")] = (
        output.Output.table
    ),
    context: Annotated[str | None, typer.Option("--context", help="Context; the current one if not given.")] = None,
) -> None:
    """Show what the pods of a replica wrote last. It needs the permission logs:read on kubernetes-sentinel."""
    found = asyncio.run(read(context, name, tail))
    if format_ is output.Output.json:
        output.print_json([each.model_dump(mode="json") for each in found])
        return
    for each in found:
        for note in notes(each):
            output.warn(note)
    sys.stdout.writelines(f"{line}\n" for line in lines(found))


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


def notes(log: PodLog) -> Iterator[str]:
    """Yield what is missing in the log of a pod."""
    if log.error is not None:
        yield f"{log.pod}: {log.error}"
    if log.is_cut:
        yield f"{log.pod}: earlier lines are left out, because the logs are large"


def lines(logs: Sequence[PodLog]) -> Iterator[str]:
    """Yield the lines of all logs; each names its pod if there are several."""
    for log in logs:
        prefix = f"{log.pod} | " if len(logs) > 1 else ""
        for line in log.text.removesuffix("\n").split("\n") if log.text else ():
            yield prefix + "\t".join(map(output.printable, line.removesuffix("\r").split("\t")))
