"""`reside dev`: watch a replica's folder, and build, load and follow it at each change."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Final

import anyio
import typer

from reside.build.registries import client_of_environment
from reside.build.source import registry_mirrors
from reside.build.source_state import read_state
from reside.cli import config, logs, output
from reside.cli.build import RuntimeOption, build_folder
from reside.cli.developing import Development, Means, develop
from reside.cli.following import MOST_LINES
from reside.cli.main import expected_errors, notes_of, one_line
from reside.cli.progress import Progress, ProgressOption, print_event
from reside.cli.prompt import confirm
from reside.cli.rendered_request import render_request
from reside.cli.session import open_session
from reside.model.constants import RESIDE_REGISTRY
from reside.model.errors import InvalidInput, NotAllowed, ResideError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from reside.build.source_state import SourceState
    from reside.build.watching import Changes
    from reside.cli.developing import Arrival
    from reside.cli.session import Session
    from reside.model.entities import LoadRequest
    from reside.model.pod_logs import PodLog
    from reside.registry import RegistryClient

TAG: Final = "dev"


def dev(
    folder: Annotated[Path, typer.Argument(help="Folder with replica.yaml and the code.")] = Path(),
    *,
    approve: Annotated[
        bool, typer.Option("--approve", help="Approve each load without asking. The account needs the right to.")
    ] = False,
    name: Annotated[
        str | None, typer.Option(help="Name of the instance; that in the manifest, or of the only one, if not given.")
    ] = None,
    tag: Annotated[str, typer.Option(help="Tag of the images.")] = TAG,
    runtime: RuntimeOption = None,
    local_cluster: Annotated[
        str,
        typer.Option(help=f"Local cluster that runs the registry {RESIDE_REGISTRY}.", envvar="RESIDE_LOCAL_CLUSTER"),
    ] = "default",
    context: Annotated[str | None, typer.Option("--context", help="Context; the current one if not given.")] = None,
    format_: ProgressOption = Progress.text,
) -> None:
    """Build and load a replica at each change of its folder, and show its logs, until interrupted.

    The contracts in folders of this folder are built, too, if the replica implements them.
    """
    if format_ is Progress.json and not approve:
        raise InvalidInput("--output json asks no question: add --approve")
    builder = Builder(tag, runtime, registry_mirrors(local_cluster), client_of_environment(local_cluster))
    said: list[str] = []
    screen = Screen(format_)
    try:
        asyncio.run(_dev(context, folder, builder, screen, name=name, said=said, approve=approve))
    except KeyboardInterrupt:
        screen.say(f"stopped. {''.join(said)}Go on with `reside dev {quote(str(folder))}`")
        raise


async def _dev(
    context: str | None,
    folder: Path,
    builder: Builder,
    screen: Screen,
    *,
    name: str | None,
    said: list[str],
    approve: bool,
) -> None:
    from reside.build.watching import watching  # noqa: PLC0415 - only this command needs the library

    read_state(folder, builder.tag)  # what is wrong from the start ends the command
    async with open_session(config.load(), context) as session:
        means = Means(builder.build, partial(decide, screen, approve=approve), screen.say, screen.show_arrival)
        development = Development(session, means, name)
        with watching(folder) as changes:
            screen.say(f"watching {folder}: Ctrl-C ends it")
            async with asyncio.TaskGroup() as group:
                showing = group.create_task(show_logs(session, development, screen))
                try:
                    found = states(folder, builder.tag, changes, screen.fail)
                    await develop(development, found, screen.fail, expected_errors())
                finally:
                    showing.cancel()
                    said += [f"{development.running}. "] if development.running else []


class Builder:
    """Builds and pushes a replica, and the contracts of its folder that have changed.

    Args:
        tag: the tag of the images.
        runtime: the base image of a replica; None: that of its language.
        mirrors: registry host → address of its mirror.
        client: how to reach the registries.
    """

    def __init__(self, tag: str, runtime: str | None, mirrors: Mapping[str, str], client: RegistryClient) -> None:
        self.tag = tag
        self._runtime = runtime
        self._mirrors = mirrors
        self._client = client
        self._pushed: dict[str, Mapping[str, str]] = {}

    async def build(self, state: SourceState) -> str:
        """Build and push; return the replica's image by digest."""
        return await anyio.to_thread.run_sync(self._build, state)

    def _build(self, state: SourceState) -> str:
        for contract in state.contracts:
            if self._pushed.get(contract.manifest.identity) != contract.labels:
                self._push(contract.folder, str(contract.reference.tag))
                self._pushed[contract.manifest.identity] = contract.labels
        return self._push(state.source.folder, self.tag)

    def _push(self, folder: Path, tag: str) -> str:
        built = build_folder(folder, tag, push=True, runtime=self._runtime, mirrors=self._mirrors, client=self._client)
        return built.image


async def states(
    folder: Path, tag: str, changes: Changes, fail: Callable[[Exception], None]
) -> AsyncIterator[tuple[SourceState, float]]:
    """Yield what a folder holds now, and after each change, with the time at which it was noticed.

    If a folder can't be built, `fail` is called with the reason, and the next change is waited for.
    """
    last, began = None, time.monotonic()
    while True:
        try:
            state = await anyio.to_thread.run_sync(read_state, folder, tag)
        except FileNotFoundError:  # a file was replaced while the folder was read: a change follows
            pass
        except (ResideError, OSError) as error:
            last = None
            fail(error)
        else:
            if state.digest != last:
                last = state.digest
                yield state, began
        await changes.wait()
        began = changes.first_at


async def show_logs(session: Session, development: Development, screen: Screen) -> None:
    """Print the logs of a new instance from their beginning, and of one that ran before what it writes from now on."""
    name, is_new = await development.instance
    try:
        async for found in logs.followed(session, name, MOST_LINES if is_new else 1, output.warn):
            screen.show_logs(found)
    except NotAllowed as error:
        screen.say(f"no logs are shown: {error}")
    except expected_errors() as error:
        screen.say(f"no more logs are shown: {one_line(error)}")


async def decide(screen: Screen, request: LoadRequest, *, approve: bool) -> None:
    """Return if a load request is to be approved: show it and ask, unless `approve` is set.

    With `approve`, people see it if the permissions are others than those of the version before.

    Raises:
        ResideError: it is not.
    """
    found = request.approve_request.difference if request.approve_request else None
    screen.show_request(request, matters=not approve or (found is not None and bool(found.added or found.removed)))
    if not (approve or await confirm("Approve?")):
        raise ResideError("nothing was loaded: change a file to load again, or use --approve")


class Screen:
    """Prints what happens: lines for people, or events for programs (`reside.cli.progress`).

    Args:
        format_: which of both.
    """

    def __init__(self, format_: Progress = Progress.text) -> None:
        self._is_json = format_ is Progress.json
        self._logs = logs.Printer(output.Output.table)

    def say(self, line: str) -> None:
        """Print what happens, beside the logs."""
        if self._is_json:
            print_event("message", text=line)
        else:
            output.errors.print(f"dev: {output.printable(line)}", highlight=False, markup=False, soft_wrap=True)

    def fail(self, error: Exception) -> None:
        """Print why a change was not loaded."""
        if self._is_json:
            print_event("failed", text=one_line(error))
        output.fail(one_line(error), notes_of(error))

    def show_arrival(self, arrival: Arrival) -> None:
        """Print that the cluster runs a change."""
        if not self._is_json:
            self.say(str(arrival))
            return
        steps = {} if arrival.times is None else arrival.times.steps
        print_event(
            "result",
            name=arrival.name,
            version=arrival.version,
            status=arrival.status,
            seconds={step: round(seconds, 3) for step, seconds in steps.items()},
        )

    def show_request(self, request: LoadRequest, *, matters: bool) -> None:
        """Print a load request; for people only if it matters."""
        if self._is_json:
            print_event("request", request=request.document())
        elif matters:
            output.console.print(render_request(request))

    def show_logs(self, found: Sequence[PodLog]) -> None:
        """Print what pods have written."""
        if not self._is_json:
            self._logs.show_more(found)
            return
        self._logs.warn(found, follows=True)
        for each in found:
            if each.text:
                print_event("log", **each.model_dump(mode="json", exclude={"cursor"}))
