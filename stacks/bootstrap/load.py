"""Phase 4: load the seed, the Sentinel and Alpha, and wait until the pods of the Sentinel and Alpha lead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from stacks.bootstrap.dynamic import Loaded

if TYPE_CHECKING:
    from reside.seed.settings import BootstrapSettings
    from stacks.bootstrap.launch import Launch


class Load(pulumi.ComponentResource):
    """The component resource of the load; it depends on the launch."""

    def __init__(self, settings: BootstrapSettings, after: Launch) -> None:
        super().__init__("reside:bootstrap:Load", "load")
        self.loaded = Loaded("loaded", settings, pulumi.ResourceOptions(parent=self, depends_on=[after.launched]))
        self.register_outputs({"load": self.loaded.id})
