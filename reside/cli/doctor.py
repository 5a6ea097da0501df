"""`reside doctor`: check this machine, the configuration and a cluster; say what is wrong, and what to do."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

import typer

from reside.cli import cluster_checks, config, listing, output
from reside.cli.explanations import explain
from reside.cli.findings import Finding, examine, failure, late
from reside.cli.listing import Column, ListOptions
from reside.cli.machine_checks import configuration_checks, machine_checks
from reside.cli.main import expected_errors
from reside.cli.session import open_session
from reside.cli.shared_options import with_options
from reside.model.errors import ResideError

if TYPE_CHECKING:
    from reside.cli.config import Cluster, Config

DEADLINE_S: Final = 10.0
CONNECTION: Final = "jazz and alpha"
COLUMNS = (Column("status"), Column("check"), Column("line", header="finding"))


@with_options(ListOptions)
def doctor(
    *,
    deadline: Annotated[float, typer.Option(min=0.1, help="Seconds that each check may take.")] = DEADLINE_S,
    options: ListOptions,
    context: Annotated[str | None, typer.Option("--context", help="Context; the current one if not given.")] = None,
) -> None:
    """Check this machine, the configuration and the cluster. The exit code is 1 if a check fails."""
    with output.errors.status("checking"):
        found = asyncio.run(find(context, deadline))
    records = [each.document() | {"line": line(each)} for each in found]
    if options.format_ is not listing.Format.table:
        records = [each.document() for each in found]
    listing.show(records, COLUMNS, options, "check")
    failed = [each.check for each in found if each.status == "failed"]
    if failed:
        raise ResideError(f"failed: {', '.join(failed)}")


def line(found: Finding) -> str:
    """Return what a check has found, with the cure, for people."""
    return f"{found.what}: {found.cure}" if found.cure else found.what


async def find(context: str | None, deadline_s: float) -> list[Finding]:
    """Run all checks; return what they have found."""
    own = examine([*machine_checks(), *configuration_checks(context)], deadline_s)
    try:
        configuration = config.load()
        chosen = configuration.context(context)
        cluster = configuration.cluster(chosen.cluster)
    except ResideError as error:
        found = await own
        known = any(each.status != "ok" and each.check in ("configuration", "account") for each in found)
        return found if known else [*found, failure("context", error)]
    here, there, inside = await asyncio.gather(
        own,
        examine(cluster_checks.reachability_checks(cluster), deadline_s),
        _inside(configuration, chosen.name, cluster, deadline_s),
    )
    return [*here, *there, *inside]


async def _inside(configuration: Config, context: str, cluster: Cluster, deadline_s: float) -> list[Finding]:
    """Open a session, and check what needs one."""
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(deadline_s):
                session = await stack.enter_async_context(open_session(configuration, context, calls_alpha=True))
        except TimeoutError:
            (known,) = explain("jazz-unavailable")
            return [replace(late(CONNECTION, deadline_s), cure=known.cure)]
        except expected_errors() as error:
            return [failure(CONNECTION, error)]
        connected = Finding("ok", CONNECTION, f"Jazz answers, and has the data of Alpha {session.alpha}")
        return [connected, *await examine(cluster_checks.session_checks(cluster, session), deadline_s)]
