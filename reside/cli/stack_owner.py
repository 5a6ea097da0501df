"""Which cluster a state of the bootstrap describes: several machines may use one object store, and the same names.

The first step of the bootstrap has the namespace in its id, and the unique id of the Kubernetes cluster in its outputs.
A state that is older than these outputs, or empty, says less or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reside.model.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIRST: Final = "NamespaceProvider-"


@dataclass(frozen=True)
class Owner:
    """A cluster: its namespace, and the unique id of its Kubernetes cluster; None, if it is unknown."""

    namespace: str | None
    uid: str | None

    def differs(self, other: Owner) -> bool:
        """Return whether these are two clusters for certain."""
        pairs = ((self.namespace, other.namespace), (self.uid, other.uid))
        return any(one is not None and two is not None and one != two for one, two in pairs)


def owner_of(deployment: Mapping[str, Any] | None) -> Owner:
    """Return the cluster that an exported state describes."""
    for resource in (deployment or {}).get("resources") or ():
        namespace = str(resource.get("id", "")).removeprefix(_FIRST)
        if namespace != str(resource.get("id", "")):
            return Owner(namespace, (resource.get("outputs") or {}).get("cluster"))
    return Owner(None, None)


def check(stack: str, store: str, found: Owner, wanted: Owner) -> None:
    """Refuse a stack of another cluster.

    Raises:
        Conflict: it is.
    """
    if found.differs(wanted):
        raise Conflict(
            f"{store} has the state of another cluster with the name {stack}: it is in namespace {found.namespace}"
            f"{_of(found)}, and not in namespace {wanted.namespace}{_of(wanted)}. Choose another name, or another "
            "prefix in RESIDE_STATE_STORE; if that cluster does not exist any more, remove its state with "
            f'`eval "$(reside cluster env)"; pulumi stack rm --force {stack}`'
        )


def _of(owner: Owner) -> str:
    return f" of the Kubernetes cluster {owner.uid}" if owner.uid else ""
