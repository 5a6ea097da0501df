"""Phase 1: Jazz and etcd, and the wait until both are ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from reside.seed import platform
from stacks.bootstrap.dynamic import Namespace, Ready

if TYPE_CHECKING:
    from reside.seed.settings import BootstrapSettings
    from stacks.bootstrap.cluster import Cluster


class Storage(pulumi.ComponentResource):
    """A volume claim, a Service and a StatefulSet for each of Jazz and etcd; `ready` completes when both are ready."""

    def __init__(self, settings: BootstrapSettings, cluster: Cluster) -> None:
        super().__init__("reside:bootstrap:Storage", "storage")
        self.namespace = Namespace("namespace", settings, pulumi.ResourceOptions(parent=self))
        definitions = platform.storage(settings)
        claims = [d for d in definitions if d["kind"] == "PersistentVolumeClaim"]
        rest = [d for d in definitions if d not in claims]
        volumes = [cluster.object(definition, self, [self.namespace]) for definition in claims]
        objects = [cluster.object(definition, self, volumes) for definition in rest]
        self.ready = Ready("ready", settings, pulumi.ResourceOptions(parent=self, depends_on=objects))
        self.register_outputs({"ready": self.ready.id})
