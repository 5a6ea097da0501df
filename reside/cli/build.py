"""`reside build`: an image out of a folder with a manifest.

A folder with ``contract.yaml`` becomes an image without layers, pushed without Docker. One with ``replica.yaml``
becomes its own Dockerfile's image, or, without one, a thin layer on ReSide's runtime image that runs ``main.py``.
Either way the label ``io.reside.manifest`` is made from the YAML file: never forgotten, always encoded right.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - typer reads the annotations at run time
from typing import TYPE_CHECKING, Annotated, Final, Literal

import anyio
import docker.errors
import docker.utils.build
import typer
import yaml

from reside.cli.output import Output, console, errors, record
from reside.local import UsageError, default_state, read_info
from reside.local.docker_context import Context
from reside.local.dockerd import private_dockerd
from reside.model.constants import MANIFEST_LABEL, RESIDE_REGISTRY
from reside.model.errors import InvalidInput, InvalidManifest
from reside.model.manifest import Manifest, encode_label, parse_manifest
from reside.registry import ImageReference, RegistryClient

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from docker import DockerClient

FILES: Final[Mapping[Literal["replica", "contract"], str]] = {"replica": "replica.yaml", "contract": "contract.yaml"}
RUNTIME: Final = f"{RESIDE_REGISTRY}/reside/runtime:latest"
MIRRORS_VARIABLE: Final = "RESIDE_REGISTRY_MIRRORS"
_IGNORED: Final = ["**/__pycache__", "**/*.pyc", "**/.git", "**/.venv", "**/.mypy_cache", "**/.ruff_cache"]
_DOCKERFILE: Final = """ARG RUNTIME
FROM ${RUNTIME}
COPY . /app/
WORKDIR /app
ENTRYPOINT ["/opt/reside/.venv/bin/python", "-m", "main"]
"""


@dataclass(frozen=True)
class Source:
    """A folder to build an image from, and what its manifest says."""

    folder: Path
    manifest: Manifest
    reference: ImageReference

    @property
    def labels(self) -> dict[str, str]:
        """The image's labels."""
        return {MANIFEST_LABEL: encode_label(self.manifest)}


@dataclass(frozen=True)
class Built:
    """What came out: ``digest`` is known once a registry has the image, or if the image has no layers."""

    type: str
    identity: str
    tag: str
    digest: str | None
    pushed: bool

    @property
    def image(self) -> str:
        """How to name the image from now on."""
        return f"{self.identity}@{self.digest}" if self.digest else f"{self.identity}:{self.tag}"


def build(
    folder: Annotated[Path, typer.Argument(help="holds replica.yaml or contract.yaml, and the code")],
    *,
    tag: Annotated[str, typer.Option(help="the image's tag")] = "latest",
    push: Annotated[bool, typer.Option("--push", help="push the image to its registry")] = False,
    runtime: Annotated[str, typer.Option(help="image that a replica without a Dockerfile is built on")] = RUNTIME,
    local_cluster: Annotated[
        str, typer.Option(help=f"local cluster whose registry is {RESIDE_REGISTRY}", envvar="RESIDE_LOCAL_CLUSTER")
    ] = "default",
    output: Annotated[Output, typer.Option(help="form of the result")] = Output.table,
) -> None:
    """Build the image of a replica or a contract."""
    with errors.status("reading the manifest") as status:
        built = build_folder(
            folder, tag, push=push, runtime=runtime, mirrors=registry_mirrors(local_cluster), progress=status.update
        )
    if output is Output.json:
        members = ("type", "identity", "tag", "digest", "pushed", "image")
        record({name: getattr(built, name) for name in members}, output)
        return
    console.print(built.image, highlight=False, soft_wrap=True)


def build_folder(
    folder: Path,
    tag: str,
    *,
    push: bool,
    runtime: str = RUNTIME,
    mirrors: Mapping[str, str],
    progress: Callable[[str], None] = lambda _line: None,
) -> Built:
    """Build a folder's image, and push it if told to.

    Not to be called from a running event loop: give it a thread.

    Args:
        folder: Holds ``replica.yaml`` or ``contract.yaml``.
        tag: The image's tag.
        push: Whether the image goes to its registry.
        runtime: What a replica's image is built on.
        mirrors: Registry host → the plain address that serves it.
        progress: Called with one line for each step.

    Raises:
        InvalidInput: the folder or its manifest is not right.
        RegistryError: a registry does not have the runtime, or does not take the image.
        LocalError: Docker can't be used, or can't build it.
    """
    source = read_source(folder, tag)
    if push or source.manifest.type == "replica":
        _check_reachable(source.reference, mirrors)
    client = RegistryClient(mirrors)
    if source.manifest.type == "contract":
        progress(f"contract {source.reference.identity}")
        digest = anyio.run(client.push_label_image, source.reference, source.labels) if push else None
    else:
        parent = ImageReference.parse(runtime)
        with private_dockerd(progress) as daemon:
            _build_replica(daemon, source, _Runtime(parent, anyio.run(client.resolve, parent), mirrors), progress)
            if push:
                progress(f"pushing {source.reference}")
                _push(daemon, source.reference, mirrors)
        digest = anyio.run(client.resolve, source.reference) if push else None
    return Built(source.manifest.type, source.reference.identity, tag, digest, push)


def read_source(folder: Path, tag: str) -> Source:
    """What a folder holds.

    Raises:
        InvalidInput: it has no manifest, two of them, or one that is not right; the message names the file.
    """
    if not folder.is_dir():
        raise InvalidInput(f"{folder} is no folder: name one that holds {' or '.join(FILES.values())}")
    present = [name for name in FILES if (folder / FILES[name]).exists()]
    if len(present) != 1:
        count = "both" if present else "neither"
        raise InvalidInput(f"{folder} holds {count} replica.yaml and contract.yaml: it must hold one of the two")
    file = folder / FILES[present[0]]
    try:
        data = yaml.safe_load(file.read_text())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidManifest(f"{file} is not YAML: {error}") from None
    try:
        manifest = parse_manifest({"type": present[0], **data} if isinstance(data, dict) else data)
    except InvalidManifest as error:
        raise InvalidManifest(f"{file}: {error}") from None
    if manifest.type != present[0]:
        raise InvalidManifest(f"{file} describes a {manifest.type}: call the file {FILES[manifest.type]}")
    reference = ImageReference.parse(manifest.identity).tagged(tag)
    return Source(folder, manifest, reference)


def registry_mirrors(local_cluster: str) -> dict[str, str]:
    """Where registries are really served: RESIDE_REGISTRY_MIRRORS (JSON), else the local cluster's registry.

    Raises:
        InvalidInput: the variable is no JSON object of texts.
    """
    if text := os.environ.get(MIRRORS_VARIABLE):
        return parse_mirrors(text)
    info = read_info(default_state(local_cluster))
    if info is None or info.registry_loopback is None:
        return {}
    return {info.registry_host: f"http://{info.registry_loopback}"}


def parse_mirrors(text: str) -> dict[str, str]:
    """Mirrors out of their JSON form.

    Raises:
        InvalidInput: it is no JSON object of texts.
    """
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError:
        data = None
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        raise InvalidInput(f'{MIRRORS_VARIABLE} must be JSON such as {{"{RESIDE_REGISTRY}": "http://127.0.0.1:5000"}}')
    return {str(host): address if "://" in address else f"http://{address}" for host, address in data.items()}


@dataclass(frozen=True)
class _Runtime:
    """The image that a replica stands on, as a registry has it."""

    reference: ImageReference
    digest: str
    mirrors: Mapping[str, str]

    @property
    def local(self) -> str:
        """Name in the daemon's store; the digest makes it always the same image."""
        return f"reside/build-runtime:{self.digest.removeprefix('sha256:')}"

    def ensure(self, daemon: DockerClient, progress: Callable[[str], None]) -> None:
        """Bring it into the daemon's store."""
        try:
            daemon.images.get(self.local)
        except docker.errors.ImageNotFound:
            progress(f"pulling {self.reference}")
            daemon.images.pull(f"{_served_name(self.reference, self.mirrors)}@{self.digest}").tag(self.local)


def _build_replica(daemon: DockerClient, source: Source, runtime: _Runtime, progress: Callable[[str], None]) -> None:
    """Build a replica's image under its full name in the daemon's store."""
    runtime.ensure(daemon, progress)
    progress(f"building {source.reference}")
    with tempfile.TemporaryFile() as file:
        context = Context(file)
        own = source.folder / "Dockerfile"
        context.data("Dockerfile", own.read_bytes() if own.exists() else _DOCKERFILE.encode())
        context.data(".dockerignore", b"Dockerfile\n.dockerignore\n")  # so that COPY leaves them out
        for name in sorted(source_files(source.folder) - {"Dockerfile", ".dockerignore"}):
            context.copy(name, source.folder / name)
        context.close()
        file.seek(0)
        lines = daemon.api.build(
            fileobj=file,
            custom_context=True,
            tag=str(source.reference),
            buildargs={"RUNTIME": runtime.local},
            labels=source.labels,
            rm=True,
            forcerm=True,
            decode=True,
        )
        for line in lines:
            if "error" in line:
                raise UsageError(f"Docker can't build {source.folder}: {line['error']}")


def source_files(folder: Path) -> set[str]:
    """The files that go into the image: all but caches and what .dockerignore names; links outside are followed."""
    ignore = folder / ".dockerignore"
    patterns = [*_IGNORED]
    if ignore.exists():
        lines = (line.strip() for line in ignore.read_text().splitlines())
        patterns += [line for line in lines if line and not line.startswith("#")]
    return {name for name in docker.utils.build.exclude_paths(str(folder), patterns) if (folder / name).is_file()}


def _push(daemon: DockerClient, reference: ImageReference, mirrors: Mapping[str, str]) -> None:
    name = _served_name(reference, mirrors)
    daemon.images.get(str(reference)).tag(name, tag=reference.tag)
    for line in daemon.api.push(name, tag=reference.tag, stream=True, decode=True):
        if "error" in line:
            raise UsageError(f"image {str(reference)!r} was not taken by its registry: {line['error']}")


def _served_name(reference: ImageReference, mirrors: Mapping[str, str]) -> str:
    """The repository's name for the daemon, which knows nothing of our mirrors."""
    mirror = mirrors.get(reference.registry)
    if mirror is None:
        return reference.identity
    return f"{mirror.rpartition('://')[2].rstrip('/')}/{reference.repository}"


def _check_reachable(reference: ImageReference, mirrors: Mapping[str, str]) -> None:
    if reference.registry == RESIDE_REGISTRY and RESIDE_REGISTRY not in mirrors:
        raise InvalidInput(
            f"nobody knows where {RESIDE_REGISTRY} is: run `reside local up`, name your cluster with --local-cluster, "
            f"or set {MIRRORS_VARIABLE}"
        )
