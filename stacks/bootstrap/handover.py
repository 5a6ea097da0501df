"""Phase 5: the platform becomes a stack of the Sentinel, and careful mode ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from stacks.bootstrap.dynamic import HandedOver

if TYPE_CHECKING:
    from reside.seed.settings import BootstrapSettings
    from stacks.bootstrap.load import Load


class Handover(pulumi.ComponentResource):
    """The component resource of the hand-over; it depends on the load."""

    def __init__(self, settings: BootstrapSettings, after: Load) -> None:
        super().__init__("reside:bootstrap:Handover", "handover")
        self.handed_over = HandedOver(
            "handed-over", settings, pulumi.ResourceOptions(parent=self, depends_on=[after.loaded])
        )
        self.register_outputs({"handover": self.handed_over.id})
