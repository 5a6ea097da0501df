"""`make up`: a complete ReSide on the embedded Kubernetes, with an example replica (`python -m reside.cli.up`).

It starts a local cluster, builds the images, runs the bootstrap (`pulumi up`), and builds and loads the greeter. A step
skips what exists already: a second run changes nothing, and a run after an interruption continues. At the end it prints
the time of each phase.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from reside.build.source import registry_mirrors
from reside.cli import cluster, config, main, output, project
from reside.cli.build import build_folder
from reside.cli.cluster_options import ClusterOptions
from reside.cli.listing import as_table
from reside.cli.progress import Steps
from reside.cli.replica import load_image
from reside.cli.replicas import COLUMNS, ReplicaView
from reside.cli.session import open_session
from reside.cli.starting import build_images, start_kubernetes
from reside.model.entities import LoadRequestSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reside.cli.replicas import Row

ROOT = project.ROOT
EXAMPLES = ("examples/contracts/greeting.v1", "examples/replicas/greeter")


class Timing:
    """Durations of the phases."""

    def __init__(self) -> None:
        self.phases: list[tuple[str, float]] = []
        self._began = time.monotonic()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure one phase."""
        began = time.monotonic()
        output.errors.rule(name, align="left")
        yield
        self.phases.append((name, time.monotonic() - began))

    def show(self) -> None:
        """Print the table."""
        total = time.monotonic() - self._began
        rows = [(name, f"{seconds:7.1f}") for name, seconds in (*self.phases, ("total", total))]
        output.errors.print(output.table(["PHASE", "SECONDS"], rows))


def up(
    local: Annotated[str, typer.Option("--name", help="Name of the local cluster.")] = "default",
) -> None:
    """Start everything: local cluster, images, bootstrap, example."""
    os.environ["PATH"] = os.pathsep.join([str(ROOT / ".venv/bin"), str(ROOT / ".tools/bin"), os.environ["PATH"]])
    name = cluster.LOCAL if local == "default" else local
    timing = Timing()
    with timing.phase("embedded Kubernetes"):
        info = start_kubernetes(local)
    with timing.phase("images"):
        images = build_images(info)
    with timing.phase("bootstrap"), Steps("bootstrap") as steps:
        settings = ClusterOptions(local=local, images=images).settings()
        cluster.bootstrap_cluster(name, settings, cluster.DEFAULT_ACCOUNT, None, steps)
    for step, seconds in steps.seconds.items():
        if seconds >= 1:
            timing.phases.append((f"  {step}", seconds))
    with timing.phase("example replica"):
        rows = asyncio.run(load_example(name, build_example(local)))
    output.console.print(as_table(rows, COLUMNS))
    timing.show()
    output.errors.print(_NEXT, highlight=False)


_NEXT = """
ReSide is up. Next:
  source .venv/bin/activate
  reside replica list --watch
  export KUBECONFIG=$(reside local kubeconfig); kubectl -n reside get pods
  reside build examples/replicas/caller --push
  reside replica load registry.reside.internal/reside/examples/caller
  make down"""


def build_example(local: str) -> str:
    """Build and push the example's contract and replica; return the replica's image by digest."""
    mirrors = registry_mirrors(local)
    with Steps("build") as steps:
        built = [
            build_folder(
                ROOT / folder, "latest", push=True, mirrors=mirrors, progress=lambda line: steps.report(line, "")
            )
            for folder in EXAMPLES
        ]
    return built[-1].image


async def load_example(context: str, image: str) -> list[Row]:
    """Load the greeter unless it runs from this image already; return the replicas."""
    rows = await list_rows(context)
    identity = image.partition("@")[0]
    greeter = next((row for row in rows if row["identity"] == identity), None)
    if greeter is None or greeter["image"] != image or greeter["status"] != "running":
        spec = LoadRequestSpec(image=image, replica_id=greeter["id"] if greeter else None)
        await load_image(context, spec, auto_approve=True)
        rows = await list_rows(context)
    return rows


async def list_rows(context: str) -> list[Row]:
    """Return the cluster's replicas."""
    async with open_session(config.load(), context) as session:
        return await ReplicaView(session.node, session.data).rows()


if __name__ == "__main__":
    try:
        typer.run(up)
    except main.expected_errors() as error:
        output.fail(main.one_line(error))
        sys.exit(1)
    except KeyboardInterrupt:
        output.fail("interrupted: run `make up` again to continue")
        sys.exit(main.INTERRUPTED)
