"""Build ReSide's images and push them to a registry: `python images/build.py --push 127.0.0.1:5000`.

`--to ghcr.io/acme/reside` pushes them to another repository, over TLS, with the passwords of `docker login`.

Standard output gets a JSON object, image → reference by digest; standard error gets the progress.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated

import anyio
import stamina.instrumentation
import typer
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # a script's path does not contain the parent folder

from images.builder import build_images, client_for
from reside.build.registries import client_of_environment
from reside.common.files import write_private
from reside.local.errors import LocalError
from reside.model.errors import ResideError
from reside.registry import ImageReference, RegistryError

__all__ = ["build_images"]


def main(
    push: Annotated[str | None, typer.Option(help="host:port of a registry on loopback")] = None,
    to: Annotated[str | None, typer.Option(help="repository such as ghcr.io/acme/reside, instead of --push")] = None,
    only: Annotated[str | None, typer.Option(help="names of images, separated by commas; all by default")] = None,
    documents: Annotated[Path | None, typer.Option(help="file that gets what the images say about themselves")] = None,
    write: Annotated[Path | None, typer.Option(help="file that gets the JSON as well")] = None,
) -> None:
    """Build the images that the registry does not have yet."""
    console = Console(stderr=True, highlight=False)
    stamina.instrumentation.set_on_retry_hooks([])  # the last error suffices; standard output is for the result
    start = time.monotonic()
    if (push is None) == (to is None):
        raise typer.BadParameter("name either --push or --to")
    try:
        client = client_for(push) if push else client_of_environment("default", to)
        found = build_images(
            push or client,
            only.split(",") if only else None,
            lambda line: console.print(f"[dim]{time.monotonic() - start:6.1f}[/dim] {line}", soft_wrap=True),
        )
        if documents is not None:
            write_private(documents, anyio.run(client.snapshot, map(ImageReference.parse, found.values())).to_json())
    except (LocalError, ResideError, RegistryError) as error:
        console.print(f"[red]{error}[/red]", soft_wrap=True)
        raise typer.Exit(1) from error
    text = json.dumps(found, indent=2)
    if write is not None:
        write.write_text(text + "\n")
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    typer.run(main)
