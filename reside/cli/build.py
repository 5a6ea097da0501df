"""`reside build`: build an image from a folder with a manifest.

A folder with `contract.yaml` becomes an image without layers. A folder with `replica.yaml` becomes the runtime image
of its language with one more layer: the folder's files, which run `main.py`, or the bundle of `main.ts`. Neither needs
Docker, root or a download of the
runtime. Docker builds only replicas that have a Dockerfile or whose runtime is in another registry. In all cases the
label `io.reside.manifest` is generated from the YAML file, so that it is never missing or wrongly encoded.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from reside.build.program import APP_FOLDER, Program, program_of, runtime_of
from reside.build.registries import client_of_environment
from reside.build.source import check_reachable, read_source, registry_mirrors
from reside.cli.output import Output, console, errors, record
from reside.model.constants import RESIDE_REGISTRY
from reside.model.errors import InvalidInput
from reside.registry import Extension, FileBlob, ImageNotFound, ImageReference, RegistryClient

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

RuntimeOption = Annotated[
    str | None, typer.Option(help="Base image, in place of ReSide's for Python (main.py) or Node (main.ts).")
]


@dataclass(frozen=True)
class BuildResult:
    """The result of a build.

    Args:
        type: `replica` or `contract`.
        identity: the image's full name without tag and digest.
        tag: the image's tag.
        digest: the image's digest; None for an image that is only in Docker's store.
        pushed: whether the image was pushed to its registry.
    """

    type: str
    identity: str
    tag: str
    digest: str | None
    pushed: bool

    @property
    def image(self) -> str:
        """The image's reference: by digest if there is one, else by tag."""
        return f"{self.identity}@{self.digest}" if self.digest else f"{self.identity}:{self.tag}"


def build(
    folder: Annotated[Path, typer.Argument(help="Folder with replica.yaml or contract.yaml, and the code.")],
    *,
    tag: Annotated[str, typer.Option(help="Tag of the image.")] = "latest",
    push: Annotated[bool, typer.Option("--push", help="Push the image to its registry.")] = False,
    runtime: RuntimeOption = None,
    local_cluster: Annotated[
        str,
        typer.Option(help=f"Local cluster that runs the registry {RESIDE_REGISTRY}.", envvar="RESIDE_LOCAL_CLUSTER"),
    ] = "default",
    output: Annotated[Output, typer.Option(help="Format of the result.")] = Output.table,
) -> None:
    """Build the image of a replica or a contract."""
    mirrors, client = registry_mirrors(local_cluster), client_of_environment(local_cluster)
    with errors.status(f"reading {folder}") as status:
        built = build_folder(
            folder, tag, push=push, runtime=runtime, mirrors=mirrors, progress=status.update, client=client
        )
    if output is Output.json:
        record({**asdict(built), "image": built.image}, output)
    else:
        console.print(built.image, highlight=False, soft_wrap=True)


def build_folder(
    folder: Path,
    tag: str,
    *,
    push: bool,
    runtime: str | None = None,
    mirrors: Mapping[str, str],
    progress: Callable[[str], None] = lambda _line: None,
    client: RegistryClient | None = None,
) -> BuildResult:
    """Build a folder's image, and push it if `push` is true.

    It runs its own event loop: call it in a thread if a loop is running already.

    Args:
        folder: contains `replica.yaml` or `contract.yaml`.
        tag: the image's tag.
        push: whether to push the image to its registry.
        runtime: the base image of a replica; None: that of its language.
        mirrors: registry host → address of its mirror.
        progress: called with one line for each step.
        client: how to reach the registries; None: over the mirrors, without other settings.

    Raises:
        InvalidInput: the folder, its manifest or its program is invalid.
        RegistryError: a registry lacks the runtime or refuses the image.
        LocalError: Docker is required but not available, or its build failed.
    """
    source = read_source(folder, tag)
    client = client or RegistryClient(mirrors)
    progress(f"{'pushing' if push else 'building'} {source.reference}")
    if push or source.manifest.type == "replica":
        check_reachable(client.located(source.reference), mirrors)
    digest: str | None
    if source.manifest.type == "contract":
        digest = anyio.run(partial(client.push_label_image, source.reference, source.labels, push=push))
    else:
        base = ImageReference.parse(runtime or runtime_of(source).image)
        registries = {client.located(image).registry for image in (base, source.reference)}
        try:
            with program_of(source, progress) as program:
                if source.has_dockerfile or len(registries) > 1:
                    digest = _build_by_docker(program, base, push, progress, client)
                else:
                    digest = _build_layer(program, base, push, client)
        except ImageNotFound as error:
            if error.image != str(client.located(base)):
                raise
            raise InvalidInput(
                f"{error}; it is the base image of replicas: build it with `make up`, or name another in --runtime"
            ) from error
    return BuildResult(source.manifest.type, source.reference.identity, tag, digest, push)


def _build_layer(program: Program, base: ImageReference, push: bool, client: RegistryClient) -> str:
    """Add one layer with a program's files to the base image, without Docker; return the image's digest."""
    source = program.source
    extension = Extension(source.labels, f"/{APP_FOLDER}", program.runtime.entrypoint, "reside build")
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "layer.tar"
        program.write_layer(path)
        return anyio.run(partial(client.extend, base, source.reference, FileBlob.of(path), extension, push=push))


def _build_by_docker(
    program: Program,
    base: ImageReference,
    push: bool,
    progress: Callable[[str], None],
    client: RegistryClient,
) -> str | None:
    from reside.build.docker import build_by_docker  # noqa: PLC0415 - slow to import, and rarely needed

    return build_by_docker(program, base, push, progress, client)
