"""Phase 2: Secrets, Jazz accounts and control blocks of Alpha and the Sentinel; access rights of the Sentinel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from reside.seed import platform
from stacks.bootstrap.dynamic import Identities

if TYPE_CHECKING:
    from reside.seed.settings import BootstrapSettings
    from stacks.bootstrap.cluster import Cluster
    from stacks.bootstrap.storage import Storage


class Accounts(pulumi.ComponentResource):
    """Alpha's and the Sentinel's accounts with their data; the Sentinel's ServiceAccount, Role and RoleBinding."""

    def __init__(self, settings: BootstrapSettings, cluster: Cluster, after: Storage) -> None:
        super().__init__("reside:bootstrap:Accounts", "accounts")
        access = platform.sentinel_access(settings.namespace, routes=settings.gateway is not None)
        last = [definition for definition in access if definition["kind"] == "RoleBinding"]
        first = [platform.sentinel_volume(settings), *(definition for definition in access if definition not in last)]
        # Beside Storage, which waits for pods. A RoleBinding needs its Role, unless the user may bind any role.
        objects = [cluster.object(definition, self, [after.namespace]) for definition in first]
        bindings = [cluster.object(definition, self, objects) for definition in last]
        self.identities = Identities(
            "identities", settings, pulumi.ResourceOptions(parent=self, depends_on=[after.ready, *objects, *bindings])
        )
        self.register_outputs({"alphaAccountId": self.identities.alpha, "sentinelAccountId": self.identities.sentinel})
