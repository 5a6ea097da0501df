"""`reside local`: the embedded Kubernetes from the command line.

Exit codes: 0 success, 1 an error of the user or a failed component (one clear message on standard error, no traceback).
`status` exits with 1 if a component is not running.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from reside.local.cluster import LocalCluster
from reside.local.errors import LocalError
from reside.local.info import ClusterInfo, read_info
from reside.local.progress import LiveProgress

app = typer.Typer(no_args_is_help=True)

Name = Annotated[str, typer.Option("--name", help="Name of the local cluster.", envvar="RESIDE_LOCAL_CLUSTER")]
State = Annotated[
    Path | None, typer.Option("--state", help="State folder of the cluster; the default one if not given.")
]


class Output(StrEnum):
    """Format of results."""

    TEXT = "text"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="Format of the result.")]


@app.command()
def up(
    name: Name = "default",
    state: State = None,
    *,
    control_plane_only: Annotated[
        bool,
        typer.Option(
            "--control-plane-only", help="Run only etcd, API server and controller-manager, which needs no root."
        ),
    ] = False,
    ingress: Annotated[
        bool,
        typer.Option(
            "--ingress", help="Also install Traefik and cert-manager; the cluster keeps them. Needs `make alltools`."
        ),
    ] = False,
    nodes: Annotated[
        int | None,
        typer.Option(
            "--nodes",
            help="Number of nodes; as many as it has if not given, at first one. With fewer than it has, the last ones "
            "are drained and removed.",
        ),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Start the cluster; if it is up, start or restart only stopped and unhealthy components."""
    with _one_line_errors():
        cluster = LocalCluster(name, state, control_plane_only=control_plane_only, ingress=ingress, nodes=nodes)
        with LiveProgress(_console(output)) as progress:
            info = cluster.up(progress)
        if output is Output.JSON:
            _print_json(info.to_json())
        else:
            typer.echo(f"Local cluster {name!r} is up.  export KUBECONFIG={info.kubeconfig}")
            _echo_ingress(info)


@app.command()
def down(
    name: Name = "default",
    state: State = None,
    *,
    delete_state: Annotated[
        bool, typer.Option("--delete-state", help="Also delete the state: Kubernetes objects, images, volumes.")
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Stop the cluster and remove its processes, interfaces, mounts and packet filter rules; keep its state."""
    with _one_line_errors():
        cluster = LocalCluster(name, state)
        with LiveProgress(_console(output)) as progress:
            cluster.down(delete_state, progress)
        if output is Output.JSON:
            _print_json({"name": name, "deleted": delete_state})
        else:
            typer.echo(f"Local cluster {name!r} is down{' and its state is deleted' if delete_state else ''}.")


@app.command()
def status(name: Name = "default", state: State = None, output: OutputOption = Output.TEXT) -> None:
    """Show the status of every component."""
    with _one_line_errors():
        cluster = LocalCluster(name, state)
        found = cluster.status()
        info = read_info(cluster.state)
    if output is Output.JSON:
        _print_json([asdict(item) for item in found])
    else:
        table = Table("component", "state", "pid")
        colours = {"running": "green", "unhealthy": "yellow", "stopped": "red"}
        for item in found:
            table.add_row(item.name, f"[{colours[item.state]}]{item.state}", str(item.pid or ""))
        Console().print(table)
        typer.echo(f"Logs: {Path(found[0].log).parent}/COMPONENT.log")
        if info is not None:
            _echo_ingress(info)
    if any(item.state != "running" for item in found):
        raise typer.Exit(1)


@app.command()
def logs(
    component: Annotated[str, typer.Argument(help="Name of a component, see `status`.")],
    name: Name = "default",
    state: State = None,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the log until interrupted.")] = False,
) -> None:
    """Print a component's log."""
    with _one_line_errors():
        log = LocalCluster(name, state).log(component)
        if not log.exists():
            raise LocalError(f"{component} was never started: {log} does not exist.")
    if follow:
        # tail also follows the file when it is rotated; Ctrl-C ends it
        raise typer.Exit(subprocess.call(["tail", "-n", "100", "-F", str(log)]))
    with log.open(errors="replace") as handle:
        shutil.copyfileobj(handle, sys.stdout)


@app.command()
def kubeconfig(name: Name = "default", state: State = None, output: OutputOption = Output.TEXT) -> None:
    """Print the path of the administrator's kubeconfig."""
    with _one_line_errors():
        info = LocalCluster(name, state).info()
    if output is Output.JSON:
        _print_json({"kubeconfig": str(info.kubeconfig), "context": info.context})
    else:
        typer.echo(info.kubeconfig)


@app.command()
def info(name: Name = "default", state: State = None, output: OutputOption = Output.TEXT) -> None:
    """Show the addresses of API server, Services and registry."""
    with _one_line_errors():
        found = LocalCluster(name, state).info().to_json()
    if output is Output.JSON:
        _print_json(found)
    else:
        table = Table(show_header=False, box=None)
        table.add_column()
        table.add_column(overflow="fold")
        for key, value in found.items():
            table.add_row(key, str(value if value is not None else "-"))
        Console().print(table)


def _console(output: Output) -> Console:
    """Return the console for progress: standard error if standard output contains JSON."""
    return Console(stderr=output is Output.JSON)


def _echo_ingress(info: ClusterInfo) -> None:
    """Print how to use the ingress controller, if the local cluster has one."""
    if info.ingress_authority is not None:
        typer.echo(f"Ingress: https on {info.ingress_address}, --cluster-issuer {info.ingress_issuer}")
        typer.echo(f"Its certificate authority: {info.ingress_authority}")


def _print_json(document: Any) -> None:
    typer.echo(json.dumps(document, indent=2))


@contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except LocalError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error
    except PermissionError as error:
        typer.echo(f"error: {error.filename}: permission denied: use sudo if root owns the cluster.", err=True)
        raise typer.Exit(1) from error
