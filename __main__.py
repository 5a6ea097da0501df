"""The bootstrap program: `pulumi up` creates a ReSide cluster in five phases, `pulumi destroy` deletes it."""

from __future__ import annotations

from pathlib import Path

import pulumi

from reside.model.errors import ResideError
from reside.seed import settings
from stacks.bootstrap.program import declare


def read_settings() -> settings.BootstrapSettings:
    """Read the settings from the environment or the stack; report an error in them without a traceback."""
    try:
        return settings.from_environment() or settings.from_stack(pulumi.Config().get, Path(__file__).parent)
    except ResideError as error:
        raise pulumi.RunError(str(error)) from None


declare(read_settings())
