"""The input of a build: a folder with a manifest, and the mirrors of registries."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import yaml

from reside.build.language import Language, language_of
from reside.local import default_state, read_info
from reside.model.constants import MANIFEST_LABEL, RESIDE_REGISTRY
from reside.model.errors import InvalidInput, InvalidManifest
from reside.model.manifest import Manifest, encode_label, parse_manifest
from reside.registry import ImageReference

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILES: Final[Mapping[Literal["replica", "contract"], str]] = {"replica": "replica.yaml", "contract": "contract.yaml"}
MIRRORS_VARIABLE: Final = "RESIDE_REGISTRY_MIRRORS"
DOCKERFILE: Final = "Dockerfile"
IGNORE_FILE: Final = ".dockerignore"
_IGNORED: Final = ("**/__pycache__", "**/*.pyc", "**/.git", "**/.venv", "**/.mypy_cache", "**/.ruff_cache")
_IGNORED_BESIDE_TYPESCRIPT: Final = ("**/node_modules", "**/*.tsbuildinfo")


@dataclass(frozen=True)
class Source:
    """A folder to build an image from, with its parsed manifest."""

    folder: Path
    manifest: Manifest
    reference: ImageReference

    @property
    def labels(self) -> dict[str, str]:
        """The image's labels."""
        return {MANIFEST_LABEL: encode_label(self.manifest)}

    @property
    def has_dockerfile(self) -> bool:
        """Whether the folder has a Dockerfile."""
        return (self.folder / DOCKERFILE).exists()

    @property
    def language(self) -> Language | None:
        """The language of a replica that has no Dockerfile; None for anything else.

        Raises:
            InvalidInput: there is no program, or one in each language.
        """
        return None if self.manifest.type == "contract" or self.has_dockerfile else language_of(self.folder)

    def files(self) -> list[str]:
        """Return the paths of the files that the image is built from, in a fixed order.

        Excluded are caches, the Dockerfile, what .dockerignore excludes, and the installed packages of a program in
        TypeScript. Symbolic links are followed, also out of
        the folder, because an image holds contents.

        Raises:
            InvalidInput: .dockerignore, or the name of a file, is not UTF-8.
        """
        ignore = self.folder / IGNORE_FILE
        patterns = [*_IGNORED, *(_IGNORED_BESIDE_TYPESCRIPT if (self.folder / "main.ts").exists() else ())]
        if ignore.exists():
            lines = (line.strip() for line in _text(ignore).splitlines())
            patterns += [line for line in lines if line and not line.startswith("#")]
        from docker.utils.build import exclude_paths  # noqa: PLC0415 - slow to import, and only builds need it

        found = set(exclude_paths(str(self.folder), patterns)) - {DOCKERFILE, IGNORE_FILE}
        names = sorted(name for name in found if (self.folder / name).is_file())
        for name in names:
            if not name.isascii() and os.fsencode(name).decode(errors="replace") != name:
                shown = os.fsencode(name).decode(errors="replace")
                raise InvalidInput(f"the name of {shown} is not UTF-8: rename it, or add it to {IGNORE_FILE}")
        return names


def read_source(folder: Path, tag: str) -> Source:
    """Read a folder and its manifest.

    Raises:
        InvalidInput: the manifest is missing, ambiguous or invalid; the message names the file.
        InvalidReference: the identity or the tag is invalid.
    """
    if not folder.is_dir():
        raise InvalidInput(f"{folder} is not a folder: name one that contains {' or '.join(FILES.values())}")
    present = [name for name in FILES if (folder / FILES[name]).exists()]
    if len(present) != 1:
        count = "both" if present else "neither"
        raise InvalidInput(
            f"{folder} contains {count} replica.yaml and contract.yaml: it must contain exactly one of them"
        )
    file = folder / FILES[present[0]]
    manifest = _parse(file, present[0])
    if manifest.type != present[0]:
        raise InvalidManifest(f"{file} describes a {manifest.type}: rename the file to {FILES[manifest.type]}")
    return Source(folder, manifest, ImageReference.parse(manifest.identity).tagged(tag))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"{file} is not UTF-8: save it as text") from None


def _parse(file: Path, kind: str) -> Manifest:
    try:
        data = yaml.safe_load(file.read_text())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidManifest(f"{file} is not YAML: {error}") from None
    except RecursionError:
        raise InvalidManifest(f"{file} is not YAML: it is nested too deeply") from None
    if not isinstance(data, dict):
        raise InvalidManifest(f"{file} contains no manifest: add members such as `identity: registry.example.org/name`")
    try:
        return parse_manifest({"type": kind, **data})
    except InvalidManifest as error:
        raise InvalidManifest(f"{file}: {error}") from None


def registry_mirrors(local_cluster: str) -> dict[str, str]:
    """Return the mirrors of registries: `RESIDE_REGISTRY_MIRRORS` (JSON), else the local cluster's registry.

    Raises:
        InvalidInput: the variable is not a JSON object of strings.
    """
    if text := os.environ.get(MIRRORS_VARIABLE):
        return parse_mirrors(text)
    info = read_info(default_state(local_cluster))
    if info is None or info.registry_loopback is None:
        return {}
    return {info.registry_host: f"http://{info.registry_loopback}"}


def parse_mirrors(text: str) -> dict[str, str]:
    """Parse mirrors from JSON; an address without a scheme is plain HTTP.

    Raises:
        InvalidInput: it is not a JSON object of strings.
    """
    try:
        data = yaml.safe_load(text)  # reads JSON as well
    except yaml.YAMLError:
        data = None
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        raise InvalidInput(f'{MIRRORS_VARIABLE} must be JSON such as {{"{RESIDE_REGISTRY}": "http://127.0.0.1:5000"}}')
    return {str(host): address if "://" in address else f"http://{address}" for host, address in data.items()}


def check_reachable(reference: ImageReference, mirrors: Mapping[str, str]) -> None:
    """Refuse an image in ReSide's built-in registry name if no mirror defines its address.

    Raises:
        InvalidInput: there is no mirror; the message names the cures.
    """
    if reference.registry == RESIDE_REGISTRY and RESIDE_REGISTRY not in mirrors:
        raise InvalidInput(
            f"the address of {RESIDE_REGISTRY} is unknown: run `reside local up`, name your cluster with "
            f"--local-cluster, or set {MIRRORS_VARIABLE}"
        )
