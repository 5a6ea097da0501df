"""`make up`: a complete ReSide with an example replica (`python -m reside.cli.up`).

It starts a local cluster, builds the images, runs the bootstrap (`pulumi up`), and builds and loads the greeter. With a
context of a kubeconfig, it uses that cluster instead, and pushes the images to a repository of yours. A step skips what
exists already: a second run changes nothing, and a run after an interruption continues. At the end it prints
the time of each phase.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from reside.access.client import connect
from reside.access.objects import cluster_uid
from reside.access.target import Target
from reside.build.source import registry_mirrors
from reside.cli import cluster, config, main, output, project, registry_login
from reside.cli.build import build_folder
from reside.cli.cluster_options import ClusterOptions, KubeContext
from reside.cli.images import push_all
from reside.cli.listing import as_table
from reside.cli.progress import Steps
from reside.cli.replica import load_image
from reside.cli.replicas import COLUMNS, ReplicaView
from reside.cli.session import open_session
from reside.cli.shared_options import with_options
from reside.cli.starting import build_images, start_kubernetes
from reside.model.entities import LoadRequestSpec
from reside.model.errors import InvalidInput
from reside.model.identities import resolved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reside.cli.replicas import Row
    from reside.seed.settings import BootstrapSettings

ROOT = project.ROOT
EXAMPLE = "greeter"
REACH_S = 30.0
"""Seconds that a Kubernetes that exists may take to answer."""
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


@with_options(ClusterOptions)
def up(
    name: Annotated[str, typer.Option(help="Name of the local cluster.")] = "default",
    *,
    kube_context: KubeContext = None,
    options: ClusterOptions,
) -> None:
    """Start everything: a local cluster unless a context is given, images, bootstrap, example."""
    os.environ["PATH"] = os.pathsep.join([str(ROOT / ".venv/bin"), str(ROOT / ".tools/bin"), os.environ["PATH"]])
    if kube_context is not None:
        up_elsewhere(kube_context, options)
        return
    timing = Timing()
    with timing.phase("embedded Kubernetes"):
        info = start_kubernetes(name)
    with timing.phase("images"):
        images = build_images(info)
    stack = cluster.LOCAL if name == "default" else name
    here = replace(options, local=name, images=images, image_repository=None)  # its own registry has the images
    bootstrap(timing, stack, here.settings())
    with timing.phase("example replica"):
        rows = asyncio.run(load_example(stack, build_example(name)))
    end(timing, rows, "export KUBECONFIG=$(reside local kubeconfig); kubectl -n reside get pods", _NEXT_HERE)


def up_elsewhere(kube_context: str, options: ClusterOptions) -> None:
    """Run ReSide on an existing cluster, by the commands of docs/own-cluster.md.

    Raises:
        InvalidInput: no repository is given, or the context can't be used.
    """
    repository = options.image_repository
    if not repository:
        raise InvalidInput(
            f"KUBE_CONTEXT={kube_context} needs a repository that the nodes of this cluster can pull from: add "
            "IMAGE_REPOSITORY=HOST/PATH, such as ghcr.io/acme/reside (docs/own-cluster.md)"
        )
    timing = Timing()
    with timing.phase(f"Kubernetes of context {kube_context}"):
        kubeconfig = str(options.kubeconfig.absolute()) if options.kubeconfig else None
        asyncio.run(reach(Target("default", "port-forward", kubeconfig, kube_context, REACH_S)))
    if options.registry_config is not None:
        os.environ["DOCKER_CONFIG"] = str(options.registry_config.absolute().parent)
    with timing.phase("images"):
        images = push_all(repository)
    settings = options.settings(kube_context)
    name = elsewhere(kube_context, settings.namespace)
    if options.registry_config is not None:
        asyncio.run(registry_login.store_login(settings.target, registry_login.read_login(options.registry_config)))
    bootstrap(timing, name, settings)
    with timing.phase("example replica"):
        rows = asyncio.run(load_example(name, images[EXAMPLE]))
    end(timing, rows, f"kubectl --context {kube_context} -n {settings.namespace} get pods", "")


def elsewhere(kube_context: str, namespace: str) -> str:
    """Return the name of a cluster, and of its stack, on a context; two namespaces of it have two names."""
    whole = kube_context if namespace == "reside" else f"{kube_context}-{namespace}"
    return re.sub(r"[^A-Za-z0-9._-]+", "-", whole)


async def reach(target: Target) -> None:
    """Check that the Kubernetes of a target answers, before anything is built."""
    async with connect(target) as client:
        await cluster_uid(client)


def bootstrap(timing: Timing, name: str, settings: BootstrapSettings) -> None:
    """Run the bootstrap, and note the steps that took a second or longer."""
    with timing.phase("bootstrap"), Steps("bootstrap") as steps:
        cluster.bootstrap_cluster(name, settings, cluster.DEFAULT_ACCOUNT, None, steps)
    for step, seconds in steps.seconds.items():
        if seconds >= 1:
            timing.phases.append((f"  {step}", seconds))


def end(timing: Timing, rows: list[Row], kubectl: str, further: str) -> None:
    """Print the replicas, the time of each phase, and what to do next."""
    output.console.print(as_table(rows, COLUMNS))
    timing.show()
    output.errors.print(f"{_NEXT}\n  {kubectl}{further}", highlight=False)


_NEXT = """
ReSide is up. Next:
  source .venv/bin/activate
  reside replica list --watch"""
_NEXT_HERE = """
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
    image = resolved(image)
    greeter = next((row for row in rows if row["identity"] == image.partition("@")[0]), None)
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
