"""The languages of replicas that are built without a Dockerfile, and the runtime image and command of each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from reside.model.constants import RESIDE_REGISTRY
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BUNDLE: Final = "main.mjs"
"""The file of the image that `main.ts` becomes."""


class Language(StrEnum):
    """A language; the values are those of the option `--lang`."""

    python = "python"
    typescript = "ts"


@dataclass(frozen=True)
class Runtime:
    """How programs of a language run.

    Args:
        image: the base image.
        entrypoint: the command, in the folder of the program.
    """

    image: str
    entrypoint: tuple[str, ...]


RUNTIMES: Final[Mapping[Language, Runtime]] = {
    Language.python: Runtime(
        f"{RESIDE_REGISTRY}/reside/runtime:latest", ("/opt/reside/.venv/bin/python", "-m", "main")
    ),
    # A young generation of 1 MiB saves 5 to 15 MB of memory, and a replica's calls are not slower for it
    Language.typescript: Runtime(
        f"{RESIDE_REGISTRY}/reside/node:latest", ("/opt/node/bin/node", "--max-semi-space-size=1", BUNDLE)
    ),
}


def language_of(folder: Path) -> Language:
    """Return the language of a replica's folder.

    Raises:
        InvalidInput: it has programs in both languages, or none; the message names the cure.
    """
    in_python = [name for name in ("main.py", "main/__main__.py") if (folder / name).exists()]
    in_typescript = (folder / "main.ts").exists()
    if in_python and in_typescript:
        raise InvalidInput(f"{folder} has both {in_python[0]} and main.ts: keep the one that the replica runs")
    if not in_python and not in_typescript:
        raise InvalidInput(
            f"{folder} has neither main.py nor main.ts: write the program, or add a Dockerfile. `reside new` makes a "
            "folder that builds"
        )
    return Language.typescript if in_typescript else Language.python
