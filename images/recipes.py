"""The images of ReSide: what each is built on, from and as.

``base`` ← ``python`` (dependencies) ← ``engine`` (Pulumi) ← ``runtime`` (our code) ← Alpha, Sentinel, seed (a label and
an entry point each): a change of our code makes one small new layer. ``jazz`` stands on ``base``, ``etcd`` on nothing.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import yaml

from images.contents import ENGINE_TOOLS, Binaries, Code, JazzServer
from images.debootstrap import Debootstrap
from images.wheels import Dependencies
from reside.alpha.contract import PACKAGED
from reside.local.docker_context import Context, digest
from reside.model.constants import MANIFEST_LABEL
from reside.model.manifest import encode_label, parse_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CHECKOUT: Final = Path(__file__).resolve().parent.parent
REPLICAS: Final = ("alpha", "kubernetes-sentinel", "seed")
CONTRACTS: Final = {identity.rpartition("/")[2]: contract for identity, contract in PACKAGED.items()}


class Content(Protocol):
    """What goes into an image."""

    def key(self) -> str:
        """A hash of all that the content is made from; cheap."""

    def write(self, context: Context, progress: Callable[[str], None]) -> None:
        """Put the content into a build context; may take minutes."""


class Nothing:
    """No content: the Dockerfile says all."""

    def key(self) -> str:
        """Always the same."""
        return ""

    def write(self, context: Context, progress: Callable[[str], None]) -> None:
        """Add nothing."""


@dataclass(frozen=True)
class Recipe:
    """How one image is built.

    Args:
        name: What it is called here; its folder, if it has one.
        repository: Its path in the registry.
        dockerfile: The Dockerfile; ``PARENT`` is its build argument.
        parent: Name of the image that it stands on.
        content: What the Dockerfile copies.
        labels: The image's labels.
    """

    name: str
    repository: str
    dockerfile: str
    parent: str | None = None
    content: Content = field(default_factory=Nothing)
    labels: Mapping[str, str] = field(default_factory=dict)

    def key(self, parent: str) -> str:
        """Hash of all inputs; ``parent`` is the key of the image below."""
        labels = (f"{name}={value}" for name, value in sorted(self.labels.items()))
        return digest(platform.machine(), parent, self.repository, self.dockerfile, self.content.key(), *labels)


def recipes(checkout: Path = CHECKOUT) -> dict[str, Recipe]:
    """All images by name, parents first."""
    base_image = os.environ.get("BASE_IMAGE")
    base = _recipe("base", checkout, content=Debootstrap())
    if base_image:
        base = Recipe("base", "reside/base", f"FROM {base_image}\n")
    found = [
        base,
        _recipe("python", checkout, "base", Dependencies(checkout)),
        _recipe("engine", checkout, "python", Binaries("/opt/reside/bin", ENGINE_TOOLS)),
        _recipe("runtime", checkout, "engine", Code(checkout)),
        _recipe("jazz", checkout, "base", JazzServer(checkout)),
        _recipe("etcd", checkout, content=Binaries("/usr/local/bin", ("etcd",), empty=("data",))),
        *(_replica(name, checkout) for name in REPLICAS),
    ]
    return {recipe.name: recipe for recipe in found}


def contract_labels() -> dict[str, dict[str, str]]:
    """The labels of ReSide's own contracts, by name."""
    return {name: {MANIFEST_LABEL: encode_label(contract)} for name, contract in CONTRACTS.items()}


def _recipe(name: str, checkout: Path, parent: str | None = None, content: Content | None = None) -> Recipe:
    dockerfile = (checkout / "images" / name / "Dockerfile").read_text()
    return Recipe(name, f"reside/{name}", dockerfile, parent, content or Nothing())


def _replica(name: str, checkout: Path) -> Recipe:
    folder = checkout / "images" / name
    dockerfile = (folder / "Dockerfile").read_text()
    labels = _labels(folder / "manifest.yaml")
    return Recipe(name, f"reside/replicas/{name}", dockerfile, "runtime", labels=labels)


def _labels(path: Path) -> dict[str, str]:
    return {MANIFEST_LABEL: encode_label(parse_manifest(yaml.safe_load(path.read_text())))}
