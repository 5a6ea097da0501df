"""The program of a replica: the files that its image has besides the runtime, and the command that runs them."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reside.build.context import Context
from reside.build.language import RUNTIMES, Language, Runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from reside.build.source import Source

APP_FOLDER: Final = "app"  # folder of a replica's program, relative to the root


@dataclass(frozen=True)
class Program:
    """A program that can be put into an image.

    Args:
        source: the replica.
        files: path in the program's folder → file.
        runtime: base image and command of the replica's language; if it has a Dockerfile, those of Python.
    """

    source: Source
    files: Mapping[str, Path]
    runtime: Runtime

    def write_layer(self, path: Path) -> None:
        """Write the files as a layer that puts them into `/app`."""
        with path.open("wb") as file:
            context = Context(file)
            context.folder(APP_FOLDER)
            self.add_to(context, f"{APP_FOLDER}/")
            context.close()

    def add_to(self, context: Context, prefix: str = "") -> None:
        """Add the files to a tar, in a fixed order."""
        for name in sorted(self.files):
            context.copy(f"{prefix}{name}", self.files[name])


def runtime_of(source: Source) -> Runtime:
    """Return the runtime of a replica.

    Raises:
        InvalidInput: it has neither a Dockerfile nor a program, or programs in two languages.
    """
    return RUNTIMES[source.language or Language.python]


@contextmanager
def program_of(source: Source, progress: Callable[[str], None] = lambda _line: None) -> Iterator[Program]:
    """Make the program of a replica; yield it. Its files exist as long as the block.

    Raises:
        InvalidInput: the program can't be made from the folder; the message says why.
        LocalError: a tool of its language is missing or has failed.
    """
    runtime = runtime_of(source)
    if source.language is not Language.typescript:
        yield Program(source, {name: source.folder / name for name in source.files()}, runtime)
        return
    from reside.build import typescript  # noqa: PLC0415 - slow to import, and other builds do not need it

    with typescript.bundled(source, progress) as files:
        yield Program(source, files, runtime)
