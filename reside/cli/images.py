"""`reside images`: build ReSide's images and push them to a repository, for a cluster elsewhere."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final

import typer

from reside.build.image_archive import unpack
from reside.build.registries import REPOSITORY_VARIABLE, client_of_environment
from reside.cli import output, project
from reside.cli.build import build_folder
from reside.cli.cluster_options import IMAGES
from reside.cli.progress import Progress, ProgressOption, print_event
from reside.common.files import write_private
from reside.model.errors import ResideError
from reside.model.locations import check_repository, located
from reside.registry import ImageReference
from reside.seed.settings import IMAGE_DOCUMENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reside.build.image_archive import ArchivedImage
    from reside.registry import RegistryClient

FOLDERS: Final = ("examples/contracts", "replicas/*", "examples/replicas", "replicas")
"""Folders whose folders are built; contracts come first."""
app = typer.Typer(no_args_is_help=True)


@app.callback()
def images() -> None:
    """Build and push ReSide's images."""


@app.command("push")
def push(
    repository: Annotated[
        str, typer.Argument(help="Repository, such as ghcr.io/acme/reside.", envvar=REPOSITORY_VARIABLE)
    ],
    *,
    archive: Annotated[
        Path | None,
        typer.Option(
            help="Archive with the images of a release (`make release`): push these, and build nothing. No checkout is "
            "needed."
        ),
    ] = None,
    format_: ProgressOption = Progress.text,
) -> None:
    """Build the images, contracts, examples and shipped replicas that a repository does not have, and push them.

    The digests are kept where `reside cluster bootstrap` finds them. Passwords are those of `docker login`.
    """
    found = push_all(repository, format_) if archive is None else push_archive(archive, repository, format_)
    places = {name: located(image, repository) for name, image in found.items()}
    if format_ is Progress.json:
        print_event("result", images=places)
    else:
        for place in places.values():
            output.console.print(place, highlight=False, soft_wrap=True)


def push_all(repository: str, format_: Progress = Progress.text) -> dict[str, str]:
    """Build and push everything that a repository does not have; keep the platform's digests for the bootstrap.

    Args:
        repository: the repository.
        format_: how the progress is printed.

    Returns:
        name of each image → identity by digest.

    Raises:
        ResideError: an image can't be built or pushed.
    """
    check_repository(repository, "the repository")
    project.checkout("`reside images push`")
    digests = project.make_state_folder() / IMAGES
    found = _platform(repository, digests.with_name(IMAGE_DOCUMENTS), format_)
    write_private(digests, json.dumps(found, indent=2) + "\n")
    client = client_of_environment("default", repository)
    return found | dict(push_folders(client, partial(_report, format_)))


def push_archive(archive: Path, repository: str, format_: Progress = Progress.text) -> dict[str, str]:
    """Push the platform's images and contracts of a release; keep their digests for the bootstrap.

    Args:
        archive: the archive.
        repository: the repository.
        format_: how the progress is printed.

    Returns:
        name of each image → identity by digest.

    Raises:
        InvalidInput: the archive can't be used.
        RegistryError: the repository can't be used.
    """
    check_repository(repository, "the repository")
    client = client_of_environment("default", repository)
    digests = project.make_state_folder() / IMAGES
    with TemporaryDirectory() as scratch:
        images = unpack(archive, Path(scratch))
        found = asyncio.run(_push_images(images, client, format_))
    references = [ImageReference.parse(image) for image in found.values()]
    write_private(digests.with_name(IMAGE_DOCUMENTS), asyncio.run(client.snapshot(references)).to_json())
    write_private(digests, json.dumps(found, indent=2) + "\n")
    return found


async def _push_images(images: list[ArchivedImage], client: RegistryClient, format_: Progress) -> dict[str, str]:
    found = {}
    for image in images:
        _report(format_, f"push {image.reference.identity}")
        found[image.name] = await image.push(client)
    return found


def _report(format_: Progress, line: str) -> None:
    """Print a line about the progress."""
    if format_ is Progress.json:
        print_event("message", text=output.printable(line))
    else:
        output.errors.print(line, style="dim", soft_wrap=True)


def _platform(repository: str, documents: Path, format_: Progress) -> dict[str, str]:
    """Build and push the platform's images and contracts; return name → identity by digest."""
    with TemporaryDirectory() as scratch:
        result = Path(scratch) / "images.json"
        command = [sys.executable, str(project.ROOT / "images/build.py"), "--to", repository]
        command += ["--documents", str(documents), "--write", str(result)]
        if format_ is Progress.json:
            code, last = _run_with_events(command)
        else:
            code, last = (
                subprocess.run(command, check=False, stdout=subprocess.DEVNULL, cwd=project.ROOT).returncode,
                "",
            )
        if code != 0:
            why = last or "see the errors above"
            raise ResideError(f"the images could not be built or pushed: {why}")
        found: dict[str, str] = json.loads(result.read_text(encoding="utf-8"))
    return found


def _run_with_events(command: list[str]) -> tuple[int, str]:
    """Run a command, and print each line of its standard error as an event; return its exit code and the last line."""
    last = ""
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", cwd=project.ROOT
    ) as process:
        for line in process.stderr or ():
            last = line.strip() or last
            _report(Progress.json, line.strip())
    return process.returncode, last


def push_folders(client: RegistryClient, progress: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """Build and push the examples and shipped replicas; yield the folder's name, and the identity by digest."""
    for folder in _folders():
        tag = "v2" if folder.name.endswith("-v2") else "latest"
        built = build_folder(folder, tag, push=True, mirrors=client.mirrors, progress=progress, client=client)
        yield folder.name, built.image


def _folders() -> list[Path]:
    found: list[Path] = []
    for pattern in FOLDERS:
        for parent in sorted(project.ROOT.glob(pattern)):
            found += [path.parent for kind in ("contract", "replica") for path in sorted(parent.glob(f"*/{kind}.yaml"))]
    return found
