"""What a folder with a replica holds at one moment: whether it can be built, and whether it differs from before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reside.build.context import digest
from reside.build.source import FILES, Source, read_source
from reside.model.errors import InvalidInput
from reside.model.manifest import ReplicaManifest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONTRACT_FILE: Final = FILES["contract"]
_EXECUTABLE: Final = 0o111


@dataclass(frozen=True)
class SourceState:
    """A replica's folder at one moment.

    Attributes:
        source: the replica.
        manifest: its manifest.
        contracts: the contracts in folders of this folder that the replica implements.
        digest: hash of everything that its image is built from, besides the runtime.
    """

    source: Source
    manifest: ReplicaManifest
    contracts: tuple[Source, ...]
    digest: str


def read_state(folder: Path, tag: str) -> SourceState:
    """Read a replica's folder.

    Args:
        folder: contains `replica.yaml`.
        tag: the tag of its image.

    Raises:
        InvalidInput: the folder is not that of a replica, has no program, or one in each language, a manifest is
            invalid, or a Python file is not Python; the message names the file.
    """
    source = read_source(folder, tag)
    if not isinstance(source.manifest, ReplicaManifest):
        raise InvalidInput(f"{folder} contains a contract: name the folder of a replica")
    _ = source.language  # refuses a folder without a program
    contracts = tuple(_contracts(folder, source.manifest))
    parts: list[str | bytes] = []
    for each in (source, *contracts):
        parts += each.labels.values()
    for name in [*source.files(), *(["Dockerfile"] if source.has_dockerfile else [])]:
        path = folder / name
        content = path.read_bytes()
        if name.endswith(".py"):
            _check_python(path, content)
        parts += [name, str(path.stat().st_mode & _EXECUTABLE), content]
    return SourceState(source, source.manifest, contracts, digest(*parts))


def _contracts(folder: Path, manifest: ReplicaManifest) -> Iterator[Source]:
    implemented = {each.identity for each in manifest.implementations.values()}
    for file in sorted(folder.glob(f"*/{CONTRACT_FILE}")):
        found = read_source(file.parent, "latest")
        if found.manifest.identity in implemented:
            yield found


def _check_python(path: Path, content: bytes) -> None:
    try:
        compile(content, str(path), "exec", dont_inherit=True)
    except (MemoryError, RecursionError):
        raise InvalidInput(f"{path} is not Python: it is nested too deeply") from None
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        why = error.msg if isinstance(error, SyntaxError) else str(error)
        raise InvalidInput(f"{path}{line} is not Python: {why}") from None
