"""Options of the commands that create a load request from an image."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer
from pydantic import ValidationError

from reside.common.validation import describe_faults
from reside.model.entities import HealthPolicy, LoadRequestSpec
from reside.model.errors import InvalidInput

ImageArgument = Annotated[str, typer.Argument(help="Image with a tag or a digest, or with neither.")]


class OnFailure(StrEnum):
    """What happens to a version that is not healthy in time."""

    stay = "stay"
    roll_back = "roll-back"


@dataclass(frozen=True)
class SpecOptions:
    """What a load request asks for besides the image."""

    name: Annotated[str | None, typer.Option(help="Name of a new instance; that in the manifest if not given.")] = None
    owner_id: Annotated[str | None, typer.Option(help="Account that owns the request; your own if not given.")] = None
    replica_id: Annotated[int | None, typer.Option(help="Instance to update; a new one if not given.")] = None
    health_deadline: Annotated[int, typer.Option(help="Seconds that the version has to become healthy.")] = 600
    min_ready: Annotated[int, typer.Option(help="Seconds that a pod must be ready before it counts.")] = 0
    on_failure: Annotated[OnFailure, typer.Option(help="What happens to a version that is not healthy in time.")] = (
        OnFailure.stay
    )
    canary: Annotated[
        int | None, typer.Option(min=1, max=99, help="Run it beside the current version, with this percentage of pods.")
    ] = None

    def spec(self, image: str) -> LoadRequestSpec:
        """Return the spec of the load request for an image.

        Raises:
            InvalidInput: an option is out of range.
            InvalidReference: the image has no name that a registry knows; Alpha would refuse the request.
        """
        from reside.registry import ImageReference  # noqa: PLC0415 - slow to import, and the help does without

        ImageReference.parse(image)
        members = {"deadline_s": self.health_deadline, "min_ready_s": self.min_ready, "on_failure": self.on_failure}
        try:
            health = HealthPolicy.model_validate(members)
        except ValidationError as error:
            raise InvalidInput(f"--health-deadline and --min-ready: {describe_faults(error, 'options')}") from None
        return LoadRequestSpec(
            image=image,
            name=self.name,
            replica_id=self.replica_id,
            owner_id=self.owner_id,
            health=health,
            canary_percent=self.canary,
        )
