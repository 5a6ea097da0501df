"""Paths of a replica's HTTP server. Pods, Ingresses and clients of other versions use them; a test freezes them."""

from __future__ import annotations

from typing import Final

from reside.model.identities import resolved

LIVENESS_PATH: Final = "/healthz"
READINESS_PATH: Final = "/readyz"
INSTANCE_HEADER: Final = "reside-instance"
"""Header of a call that names the process for which its token was made."""


def replica_path(replica: str) -> str:
    """Return the prefix of all paths of a replica except probes and metrics; it ends with `/`."""
    return f"/replicas/{replica}/"


def rpc_path(replica: str, contract: str, method: str) -> str:
    """Return the path of a method of a replica instance."""
    return f"{replica_path(replica)}rpc/{resolved(contract)}/{method}"


def account_path(replica: str) -> str:
    """Return the path at which a replica instance tells everybody the id of its account."""
    return f"{replica_path(replica)}account"


def signed_path(path: str, instance: str) -> str:
    """Return what the token of a call signs as its path, so that one process of the receiver accepts it.

    Args:
        path: path of the call.
        instance: the value of the header `INSTANCE_HEADER`.
    """
    return f"{path}#{instance}"
