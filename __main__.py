"""The bootstrap program: `pulumi up` brings a ReSide cluster up in five phases, `pulumi destroy` takes it down."""

from __future__ import annotations

from pathlib import Path

import pulumi

from stacks import settings
from stacks.bootstrap import Accounts, Cluster, Handover, Launch, Load, Storage


def main() -> None:
    """Read the stack's settings and wire the phases."""
    config = pulumi.Config()
    wanted = settings.from_environment() or settings.from_stack(config.get, Path(__file__).parent)
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
