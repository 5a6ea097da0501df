"""Build a replica's image with Docker: if its folder has a Dockerfile, or its base image is in another registry."""

from __future__ import annotations

import json
import tempfile
from typing import TYPE_CHECKING, Final

import anyio
import docker.errors

from reside.build.context import Context
from reside.build.daemon import private_dockerd
from reside.build.source import DOCKERFILE, IGNORE_FILE
from reside.local import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from docker import DockerClient

    from reside.build.program import Program
    from reside.registry import ImageReference, RegistryClient

_RUNTIMES: Final = "reside/build-runtime"
_DEFAULT: Final = """ARG RUNTIME
FROM ${RUNTIME}
COPY . /app/
WORKDIR /app
ENTRYPOINT """


def build_by_docker(
    program: Program,
    below: ImageReference,
    push: bool,
    progress: Callable[[str], None],
    client: RegistryClient,
) -> str | None:
    """Build a folder's image; its Dockerfile receives the runtime as build argument `RUNTIME`.

    Args:
        program: the files, and the command of a folder without a Dockerfile.
        below: the runtime.
        push: whether to push the image.
        progress: called with one line for each step.
        client: how to reach the registries.

    Returns:
        the image's digest if it was pushed; None if it is only in the daemon's store, under its full name.

    Raises:
        LocalError: Docker is not available, or the build failed.
        RegistryError: a registry does not have the runtime, or refused the image.
    """
    source, mirrors = program.source, client.mirrors
    pinned = client.located(below).pinned(anyio.run(client.resolve, below))
    with private_dockerd(progress) as daemon:
        runtime = _ensure(daemon, pinned, mirrors, progress)
        progress(f"building {source.reference}")
        _build(daemon, program, runtime)
        if not push:
            return None
        progress(f"pushing {source.reference}")
        _push(daemon, source.reference, client.located(source.reference), mirrors)
    return anyio.run(client.resolve, source.reference)


def _ensure(
    daemon: DockerClient, runtime: ImageReference, mirrors: Mapping[str, str], progress: Callable[[str], None]
) -> str:
    """Pull the runtime into the daemon's store; return its name there, which contains the digest."""
    name = f"{_RUNTIMES}:{runtime.target.removeprefix('sha256:')}"
    try:
        daemon.images.get(name)
    except docker.errors.ImageNotFound:
        progress(f"pulling {runtime}")
        daemon.images.pull(f"{_served_name(runtime, mirrors)}@{runtime.digest}").tag(name)
        for tag in {tag for image in daemon.images.list(name=_RUNTIMES) for tag in image.tags} - {name}:
            daemon.images.remove(tag)  # an earlier runtime; layers that other images use are kept
    return name


def _build(daemon: DockerClient, program: Program, runtime: str) -> None:
    source = program.source
    with tempfile.TemporaryFile() as file:
        context = Context(file)
        own = source.folder / DOCKERFILE
        context.data(DOCKERFILE, own.read_bytes() if own.exists() else _dockerfile(program.runtime.entrypoint))
        context.data(IGNORE_FILE, f"{DOCKERFILE}\n{IGNORE_FILE}\n".encode())  # so that COPY excludes them
        program.add_to(context)
        context.close()
        file.seek(0)
        lines = daemon.api.build(
            fileobj=file,
            custom_context=True,
            tag=str(source.reference),
            buildargs={"RUNTIME": runtime},
            labels=source.labels,
            rm=True,
            forcerm=True,
            decode=True,
        )
        for line in lines:
            if "error" in line:
                raise UsageError(f"Docker failed to build {source.folder}: {line['error']}")


def _dockerfile(entrypoint: Sequence[str]) -> bytes:
    return f"{_DEFAULT}{json.dumps([*entrypoint])}\n".encode()


def _push(daemon: DockerClient, reference: ImageReference, where: ImageReference, mirrors: Mapping[str, str]) -> None:
    name = _served_name(where, mirrors)
    daemon.images.get(str(reference)).tag(name, tag=reference.tag)
    for line in daemon.api.push(name, tag=reference.tag, stream=True, decode=True):
        if "error" in line:
            raise UsageError(f"the registry refused image {str(reference)!r}: {line['error']}")


def _served_name(reference: ImageReference, mirrors: Mapping[str, str]) -> str:
    """Return the repository's name at its mirror, because the daemon does not know the mirrors."""
    mirror = mirrors.get(reference.registry)
    if mirror is None:
        return reference.identity
    return f"{mirror.rpartition('://')[2].rstrip('/')}/{reference.repository}"
