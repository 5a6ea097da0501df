"""The bootstrap program: `pulumi up` creates a ReSide cluster in five phases, `pulumi destroy` deletes it."""

from __future__ import annotations

from pathlib import Path

import pulumi

from reside.model.errors import ResideError
from reside.seed import settings
from stacks.bootstrap import Accounts, Cluster, Handover, Launch, Load, Storage


def read_settings() -> settings.BootstrapSettings:
    """Read the settings from the environment or the stack; report an error in them without a traceback."""
    try:
        return settings.from_environment() or settings.from_stack(pulumi.Config().get, Path(__file__).parent)
    except ResideError as error:
        raise pulumi.RunError(str(error)) from None


def main() -> None:
    """Read the stack's settings and declare the phases."""
    found = read_settings()
    cluster = Cluster(found)
    storage = Storage(found, cluster)
    accounts = Accounts(found, cluster, after=storage)
    launch = Launch(found, after=accounts)
    load = Load(found, after=launch)
    Handover(found, after=load)
    pulumi.export("namespace", found.namespace)
    pulumi.export("alphaAccountId", accounts.identities.alpha)
    pulumi.export("sentinelAccountId", accounts.identities.sentinel)


main()
