"""What the rules compare an object with: the cluster, and the stack that contains the object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PLATFORM_STACK: Final = "platform"
PLATFORM_NAMES: Final = frozenset(
    {
        "alpha",
        "etcd",
        "jazz",
        "kubernetes",
        "kubernetes-sentinel",
        "kubernetes-sentinel-engine",
        "platform",
        "reside-teardown",
        "seed",
        "super-admin-claim",
    }
)
"""Names of objects and stacks that only Alpha declares."""
_SHARED: Final = {
    "alpha": frozenset({"Secret/super-admin-claim"}),
    "kubernetes-sentinel": frozenset(
        {
            "PersistentVolumeClaim/kubernetes-sentinel",
            "Secret/kubernetes-sentinel-engine",
            "ServiceAccount/kubernetes-sentinel",
        }
    ),
}
"""Stack of Alpha → objects of the platform that its pods use."""


@dataclass(frozen=True)
class Context:
    """What the rules compare with.

    Attributes:
        namespace: the cluster's namespace; None: not checked.
        manager: the value of the managed-by label.
        stack: the stack that contains the object; None: the rules about stacks are not checked.
        own: `Kind/name` of the objects of this stack.
        trusted: whether Alpha declares this stack.
    """

    namespace: str | None
    manager: str = "kubernetes-sentinel"
    stack: str | None = None
    own: frozenset[str] = frozenset()
    trusted: bool = False

    @property
    def is_platform(self) -> bool:
        """Whether the stack has the objects of Jazz, etcd and the Sentinel's access."""
        return self.trusted and self.stack == PLATFORM_STACK

    def may_use(self, key: str) -> bool:
        """Return whether objects of the stack may refer to the object `Kind/name`."""
        return key in self.own or (self.trusted and key in _SHARED.get(self.stack or "", frozenset()))
