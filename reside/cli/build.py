"""`reside build`: build an image from a folder with a manifest.

A folder with `contract.yaml` becomes an image without layers. A folder with `replica.yaml` becomes the runtime image
with one more layer, which holds the folder's files, and runs `main.py`. Neither needs Docker, root or a download of the
runtime. Docker builds only replicas that have a Dockerfile or whose runtime is in another registry. In all cases the
label `io.reside.manifest` is generated from the YAML file, so that it is never missing or wrongly encoded.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import anyio
import typer

from reside.build.context import Context
from reside.build.registries import client_of_environment
from reside.build.source import Source, check_reachable, read_source, registry_mirrors
from reside.cli.output import Output, console, errors, record
from reside.model.constants import RESIDE_REGISTRY
from reside.model.errors import InvalidInput
from reside.registry import Extension, FileBlob, ImageNotFound, ImageReference, RegistryClient

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

RUNTIME: Final = f"{RESIDE_REGISTRY}/reside/runtime:latest"
ENTRYPOINT: Final = ("/opt/reside/.venv/bin/python", "-m", "main")
APP_FOLDER: Final = "app"  # folder of a replica's code, relative to the root


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
    runtime: Annotated[str, typer.Option(help="Base image of a replica without a Dockerfile.")] = RUNTIME,
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
    runtime: str = RUNTIME,
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
        runtime: the base image of a replica without a Dockerfile.
        mirrors: registry host → address of its mirror.
        progress: called with one line for each step.
        client: how to reach the registries; None: over the mirrors, without other settings.

    Raises:
        InvalidInput: the folder or its manifest is invalid.
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
        base = ImageReference.parse(runtime)
        registries = {client.located(image).registry for image in (base, source.reference)}
        try:
            if source.has_dockerfile or len(registries) > 1:
                digest = _build_by_docker(source, base, push, progress, client)
            else:
                digest = _build_layer(source, base, push, client)
        except ImageNotFound as error:
            if error.image != str(client.located(base)):
                raise
            raise InvalidInput(
                f"{error}; it is the base image of replicas: build it with `make up`, or name another in --runtime"
            ) from error
    return BuildResult(source.manifest.type, source.reference.identity, tag, digest, push)


def _build_layer(source: Source, base: ImageReference, push: bool, client: RegistryClient) -> str:
    """Add one layer with the folder's files to the base image, without Docker; return the image's digest."""
    extension = Extension(source.labels, f"/{APP_FOLDER}", ENTRYPOINT, "reside build")
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "layer.tar"
        write_layer(source, path)
        return anyio.run(partial(client.extend, base, source.reference, FileBlob.of(path), extension, push=push))


def _build_by_docker(
    source: Source,
    base: ImageReference,
    push: bool,
    progress: Callable[[str], None],
    client: RegistryClient,
) -> str | None:
    from reside.build.docker import build_by_docker  # noqa: PLC0415 - slow to import, and rarely needed

    return build_by_docker(source, base, push, progress, client)


def write_layer(source: Source, path: Path) -> None:
    """Write the files of a folder as a layer that puts them into `/app`."""
    with path.open("wb") as file:
        context = Context(file)
        context.folder(APP_FOLDER)
        for name in source.files():
            context.copy(f"{APP_FOLDER}/{name}", source.folder / name)
        context.close()
