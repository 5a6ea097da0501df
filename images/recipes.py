"""The images of ReSide: the parent, content and repository of each.

`base` ← `python` (dependencies) ← `engine` (Pulumi) ← `runtime` (our code) ← Alpha, Sentinel, seed (a label and an
entry point each). `base` ← `node` (Node.js, for replicas in TypeScript) ← `jazz`; `etcd` has no parent. Images that
change rarely are built by Docker from the Dockerfile in their folder. `runtime` and its children are assembled in the
registry, so a change of our code costs seconds and starts no daemon.
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import yaml

from images.contents import ENGINE_TOOLS, Binaries, Code, JazzServer, NodeRuntime
from images.debootstrap import Debootstrap
from images.wheels import Dependencies
from reside.alpha.contract import PACKAGED
from reside.build.context import digest
from reside.model.constants import MANIFEST_LABEL
from reside.model.manifest import encode_label, parse_manifest
from reside.registry import Extension

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.build.context import Context

CHECKOUT: Final = Path(__file__).resolve().parent.parent
_AUTHOR: Final = "images/build.py"
REPLICAS: Final = ("alpha", "kubernetes-sentinel", "seed")
CONTRACTS: Final = {identity.rpartition("/")[2]: contract for identity, contract in PACKAGED.items()}


class Content(Protocol):
    """The content of an image."""

    def key(self) -> str:
        """Return a hash of all inputs of the content; cheap."""

    def write(self, context: Context, progress: Callable[[str], None]) -> None:
        """Add the content to a build context; may take minutes."""


@dataclass(frozen=True)
class Recipe:
    """How one image is built.

    Args:
        name: name of the image, and of its folder if it has one.
        repository: path in the registry.
        parent: name of the parent image; None: none.
        content: content of the image; None: none.
        dockerfile: the Dockerfile, whose build argument `PARENT` is the parent image; None: Docker is not needed.
        extension: what an image without a Dockerfile adds in addition to its content.
    """

    name: str
    repository: str
    parent: str | None = None
    content: Content | None = None
    dockerfile: str | None = None
    extension: Extension = field(default_factory=Extension)

    def key(self, parent: str) -> str:
        """Return a hash of all inputs; `parent` is the key of the parent image."""
        content = self.content.key() if self.content else ""
        extension = json.dumps(asdict(self.extension), sort_keys=True)
        return digest(platform.machine(), parent, self.repository, self.dockerfile or "", content, extension)


def recipes(checkout: Path = CHECKOUT) -> dict[str, Recipe]:
    """Return all images by name, parents first."""
    base_image = os.environ.get("BASE_IMAGE")
    base = _recipe("base", checkout, content=Debootstrap())
    if base_image:
        base = Recipe("base", "reside/base", dockerfile=f"FROM {base_image}\n")
    found = [
        base,
        _recipe("python", checkout, "base", Dependencies(checkout)),
        _recipe("engine", checkout, "python", Binaries("/opt/reside/bin", ENGINE_TOOLS)),
        Recipe("runtime", "reside/runtime", "engine", Code(checkout), extension=Extension(author=_AUTHOR)),
        _recipe("node", checkout, "base", NodeRuntime(checkout)),
        _recipe("jazz", checkout, "node", JazzServer(checkout)),
        _recipe("etcd", checkout, content=Binaries("/usr/local/bin", ("etcd",), empty=("data",))),
        *(_replica(name, checkout) for name in REPLICAS),
    ]
    return {recipe.name: recipe for recipe in found}


def contract_labels() -> dict[str, dict[str, str]]:
    """Return the labels of ReSide's own contracts, by name."""
    return {name: {MANIFEST_LABEL: encode_label(contract)} for name, contract in CONTRACTS.items()}


def _recipe(name: str, checkout: Path, parent: str | None = None, content: Content | None = None) -> Recipe:
    dockerfile = (checkout / "images" / name / "Dockerfile").read_text()
    return Recipe(name, f"reside/{name}", parent, content, dockerfile)


def _replica(name: str, checkout: Path) -> Recipe:
    manifest = parse_manifest(yaml.safe_load((checkout / "images" / name / "manifest.yaml").read_text()))
    module = f"reside.{name.rpartition('-')[2]}"
    entrypoint = ("/opt/reside/.venv/bin/python", "-m", module)
    extension = Extension({MANIFEST_LABEL: encode_label(manifest)}, entrypoint=entrypoint, author=_AUTHOR)
    return Recipe(name, f"reside/replicas/{name}", "runtime", extension=extension)
