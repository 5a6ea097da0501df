"""The builder's operations on a Docker daemon: build, pull and export images, and remove old ones."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import docker.errors

from images import exports
from images.errors import ImageBuildError
from reside.build.archive import save_images
from reside.model.constants import RESIDE_REGISTRY
from reside.registry import ImageReference

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    from docker import DockerClient

    from images.recipes import Recipe

KEPT_BUILDS = 3  # of each image, so that two checkouts do not remove each other's builds


@dataclass(frozen=True)
class Item:
    """A recipe with the tag computed from its inputs, and the repository of its parent image."""

    recipe: Recipe
    tag: str
    below: str | None = None

    @property
    def local(self) -> str:
        """Name in the daemon's store, the same for every registry."""
        return f"reside/{self.recipe.name}:{self.tag}"

    @property
    def reference(self) -> ImageReference:
        """Name in the registry, with the tag computed from the inputs."""
        return ImageReference(RESIDE_REGISTRY, self.recipe.repository, self.tag)


@dataclass(frozen=True)
class Daemon:
    """A Docker daemon for builds.

    Args:
        client: the daemon.
        registry: `host:port` on loopback, from which parents are pulled.
        progress: called with one line for each step.
    """

    client: DockerClient
    registry: str
    progress: Callable[[str], None]

    def has(self, item: Item) -> bool:
        """Return whether the daemon's store has the image."""
        try:
            self.client.images.get(item.local)
        except docker.errors.ImageNotFound:
            return False
        return True

    def pull(self, item: Item) -> None:
        """Pull the image from the registry into the daemon's store."""
        remote = f"{self.registry}/{item.recipe.repository}"
        with timed(f"{item.recipe.name}: pulled", self.progress):
            self.client.images.pull(remote, tag=item.tag).tag(item.local)
            self.client.images.remove(f"{remote}:{item.tag}")

    def build(self, item: Item, parent: str, context: Path) -> None:
        """Build the image from a context, then remove the context."""
        name = item.recipe.name
        with timed(f"{name}: built", self.progress), context.open("rb") as file:
            lines = self.client.api.build(
                fileobj=file,
                custom_context=True,
                tag=item.local,
                buildargs={"PARENT": parent},
                rm=True,
                forcerm=True,
                decode=True,
            )
            for line in lines:
                if "error" in line:
                    raise ImageBuildError(name, f"Docker failed to build it: {line['error']}")
        context.unlink()

    def export(self, items: Sequence[Item], scratch: Path) -> None:
        """Export images from the daemon's store into the cache."""
        with timed(f"{len(items)} images exported from Docker", self.progress):
            images = save_images(self.client, [item.local for item in items], scratch)
            for item in items:
                exports.keep(item.tag, images[item.local])

    def remove_old(self, items: Collection[Item]) -> None:
        """Remove all but the latest builds of these images from the store, and their unused layers."""
        current = {item.local for item in items}
        for item in items:
            images = self.client.images.list(name=f"reside/{item.recipe.name}")
            images.sort(key=lambda image: str(image.attrs["Created"]), reverse=True)
            for tag in {tag for image in images[KEPT_BUILDS:] for tag in image.tags} - current:
                self.client.images.remove(tag, force=True)


@contextmanager
def timed(what: str, progress: Callable[[str], None]) -> Iterator[None]:
    """Report the block as done, with its duration, unless it raises."""
    start = time.monotonic()
    yield
    progress(f"{what} in {time.monotonic() - start:.1f} s")
