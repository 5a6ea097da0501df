"""Options of the commands that create a load request from an image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from reside.model.entities import LoadRequestSpec

ImageArgument = Annotated[str, typer.Argument(help="Image with a tag or a digest, or with neither.")]


@dataclass(frozen=True)
class SpecOptions:
    """What a load request asks for besides the image."""

    name: Annotated[str | None, typer.Option(help="Name of a new instance; that in the manifest if not given.")] = None
    owner_id: Annotated[str | None, typer.Option(help="Account that owns the request; your own if not given.")] = None
    replica_id: Annotated[int | None, typer.Option(help="Instance to update; a new one if not given.")] = None

    def spec(self, image: str) -> LoadRequestSpec:
        """Return the spec of the load request for an image."""
        return LoadRequestSpec(image=image, name=self.name, replica_id=self.replica_id, owner_id=self.owner_id)
