"""Phase 3: run Alpha and the Sentinel inside the seed until every expected permission is granted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from stacks.bootstrap.dynamic import Launched

if TYPE_CHECKING:
    from reside.seed.settings import BootstrapSettings
    from stacks.bootstrap.accounts import Accounts


class Launch(pulumi.ComponentResource):
    """The component resource of the launch; it depends on the accounts."""

    def __init__(self, settings: BootstrapSettings, after: Accounts) -> None:
        super().__init__("reside:bootstrap:Launch", "launch")
        self.launched = Launched(
            "launched", settings, pulumi.ResourceOptions(parent=self, depends_on=[after.identities])
        )
        self.register_outputs({"launch": self.launched.id})
