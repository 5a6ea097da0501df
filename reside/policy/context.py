"""What the rules compare an object with: the cluster, and the stack that contains the object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

PLATFORM_STACK: Final = "platform"
PLATFORM_NAMES: Final = frozenset(
    {
        "alpha",
        "etcd",
        "jazz",
        "kubernetes",
        "kubernetes-sentinel",
        "kubernetes-sentinel-engine",
        "kubernetes-sentinel-events",
        "kubernetes-sentinel-logs",
        "kubernetes-sentinel-routes",
        "kubernetes-sentinel-store",
        "platform",
        "reside-cluster",
        "reside-registry",
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
            "Secret/kubernetes-sentinel-store",
            "ServiceAccount/kubernetes-sentinel",
        }
    ),
}
"""Stack of Alpha → objects of the platform that its pods use."""
_SHARED_BY_ALL: Final = frozenset({"Secret/reside-registry"})
"""Objects of the platform that pods of every stack of Alpha use: the kubelet pulls their images with it."""


@dataclass(frozen=True)
class Context:
    """What the rules compare with.

    Attributes:
        namespace: the cluster's namespace; None: not checked.
        manager: the value of the managed-by label.
        stack: the stack that contains the object; None: the rules about stacks are not checked.
        own: `Kind/name` of the objects of this stack.
        selectors: the pod selectors of the NetworkPolicies of this stack.
        trusted: whether Alpha declares this stack.
    """

    namespace: str | None
    manager: str = "kubernetes-sentinel"
    stack: str | None = None
    own: frozenset[str] = frozenset()
    selectors: tuple[Mapping[str, Any], ...] = ()
    trusted: bool = False

    @property
    def is_platform(self) -> bool:
        """Whether the stack has the objects of Jazz, etcd and the Sentinel's access."""
        return self.trusted and self.stack == PLATFORM_STACK

    @property
    def is_system(self) -> bool:
        """Whether the stack is a part of ReSide: Jazz and etcd, Alpha, or the Sentinel."""
        return self.is_platform or (self.trusted and self.stack in _SHARED)

    def may_use(self, key: str) -> bool:
        """Return whether objects of the stack may refer to the object `Kind/name`."""
        if key in self.own:
            return True
        return self.trusted and key in _SHARED.get(self.stack or "", frozenset()) | _SHARED_BY_ALL
