"""The bootstrap program: `pulumi up` brings a ReSide cluster up in five phases, `pulumi destroy` takes it down."""

from __future__ import annotations

from pathlib import Path

import pulumi

from reside.model.errors import ResideError
from reside.seed import settings
from stacks.bootstrap import Accounts, Cluster, Handover, Launch, Load, Storage


def read_settings() -> settings.BootstrapSettings:
    """The settings out of the environment or the stack; a mistake in them is told without a traceback."""
    try:
        return settings.from_environment() or settings.from_stack(pulumi.Config().get, Path(__file__).parent)
    except ResideError as error:
        raise pulumi.RunError(str(error)) from None


def main() -> None:
    """Read the stack's settings and wire the phases."""
    wanted = read_settings()
    cluster = Cluster(wanted)
    storage = Storage(wanted, cluster)
    accounts = Accounts(wanted, cluster, after=storage)
    launch = Launch(wanted, after=accounts)
    load = Load(wanted, after=launch)
    Handover(wanted, after=load)
    pulumi.export("namespace", wanted.namespace)
    pulumi.export("alphaAccountId", accounts.identities.alpha)
    pulumi.export("sentinelAccountId", accounts.identities.sentinel)


main()
