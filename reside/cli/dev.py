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
from reside.cli import config, loading, logs, output
from reside.cli.build import RUNTIME, build_folder
from reside.cli.developing import Development, Means, develop
from reside.cli.following import MOST_LINES
from reside.cli.main import expected_errors, one_line
from reside.cli.prompt import confirm
from reside.cli.session import open_session
from reside.model.constants import RESIDE_REGISTRY
from reside.model.errors import NotAllowed, ResideError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from reside.build.source_state import SourceState
    from reside.build.watching import Changes
    from reside.cli.session import Session
    from reside.model.entities import LoadRequest
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
    runtime: Annotated[str, typer.Option(help="Base image of a replica without a Dockerfile.")] = RUNTIME,
    local_cluster: Annotated[
        str,
        typer.Option(help=f"Local cluster that runs the registry {RESIDE_REGISTRY}.", envvar="RESIDE_LOCAL_CLUSTER"),
    ] = "default",
    context: Annotated[str | None, typer.Option("--context", help="Context; the current one if not given.")] = None,
) -> None:
    """Build and load a replica at each change of its folder, and show its logs, until interrupted.

    The contracts in folders of this folder are built, too, if the replica implements them.
    """
    builder = Builder(tag, runtime, registry_mirrors(local_cluster), client_of_environment(local_cluster))
    said: list[str] = []
    try:
        asyncio.run(_dev(context, folder, builder, name, said, approve=approve))
    except KeyboardInterrupt:
        say(f"stopped. {''.join(said)}Go on with `reside dev {quote(str(folder))}`")
        raise


async def _dev(
    context: str | None, folder: Path, builder: Builder, name: str | None, said: list[str], *, approve: bool
) -> None:
    from reside.build.watching import watching  # noqa: PLC0415 - only this command needs the library

    read_state(folder, builder.tag)  # what is wrong from the start ends the command
    async with open_session(config.load(), context) as session:
        development = Development(session, Means(builder.build, partial(decide, approve=approve), say), name)
        with watching(folder) as changes:
            say(f"watching {folder}: Ctrl-C ends it")
            async with asyncio.TaskGroup() as group:
                showing = group.create_task(show_logs(session, development))
                try:
                    await develop(development, states(folder, builder.tag, changes), fail, expected_errors())
                finally:
                    showing.cancel()
                    said += [f"{development.running}. "] if development.running else []


class Builder:
    """Builds and pushes a replica, and the contracts of its folder that have changed.

    Args:
        tag: the tag of the images.
        runtime: the base image of a replica without a Dockerfile.
        mirrors: registry host → address of its mirror.
        client: how to reach the registries.
    """

    def __init__(self, tag: str, runtime: str, mirrors: Mapping[str, str], client: RegistryClient) -> None:
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


async def states(folder: Path, tag: str, changes: Changes) -> AsyncIterator[tuple[SourceState, float]]:
    """Yield what a folder holds now, and after each change, with the time at which it was noticed.

    A folder that can't be built is said, and the next change is waited for.
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


async def show_logs(session: Session, development: Development) -> None:
    """Print the logs of a new instance from their beginning, and of one that ran before what it writes from now on."""
    (name, is_new), printer = await development.instance, logs.Printer(output.Output.table)
    try:
        async for found in logs.followed(session, name, MOST_LINES if is_new else 1, output.warn):
            printer.show_more(found)
    except NotAllowed as error:
        say(f"no logs are shown: {error}")
    except expected_errors() as error:
        say(f"no more logs are shown: {one_line(error)}")


async def decide(request: LoadRequest, *, approve: bool) -> None:
    """Return if a load request is to be approved: show it and ask, unless `approve` is set.

    With `approve`, it is shown if the permissions are others than those of the version before.

    Raises:
        ResideError: it is not.
    """
    found = request.approve_request.difference if request.approve_request else None
    if approve:
        if found is not None and (found.added or found.removed):
            output.console.print(loading.render_request(request))
        return
    output.console.print(loading.render_request(request))
    if not await confirm("Approve?"):
        raise ResideError("nothing was loaded: change a file to load again, or use --approve")


def say(line: str) -> None:
    """Print what happens, beside the logs."""
    output.errors.print(f"dev: {output.printable(line)}", highlight=False, markup=False, soft_wrap=True)


def fail(error: Exception) -> None:
    """Print why a change was not loaded."""
    output.fail(one_line(error))
