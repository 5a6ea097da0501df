"""Declare the phases. Pulumi runs this in the process of `reside cluster bootstrap`, or of the root's program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from stacks.bootstrap.accounts import Accounts
from stacks.bootstrap.cluster import Cluster
from stacks.bootstrap.handover import Handover
from stacks.bootstrap.launch import Launch
from stacks.bootstrap.load import Load
from stacks.bootstrap.storage import Storage

if TYPE_CHECKING:
    from reside.seed.settings import BootstrapSettings


def declare(settings: BootstrapSettings) -> None:
    """Declare the phases of one cluster, and export the ids of its first accounts."""
    cluster = Cluster(settings)
    storage = Storage(settings, cluster)
    accounts = Accounts(settings, cluster, after=storage)
    launch = Launch(settings, after=accounts)
    load = Load(settings, after=launch)
    Handover(settings, after=load)
    pulumi.export("namespace", settings.namespace)
    pulumi.export("alphaAccountId", accounts.identities.alpha)
    pulumi.export("sentinelAccountId", accounts.identities.sentinel)
