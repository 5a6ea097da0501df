"""How many pods each version of a replica has while it runs (docs/model.md, section 5). Pure.

Calls are divided by pods, because the Service selects all pods of the replica. So the canary gets its share of the
calls as a share of the pods. The current version keeps all of its pods until the canary has been healthy once: a canary
that never starts takes no capacity from callers. Each of the two has at least one pod.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reside.model.entities import Replica, ReplicaVersion


def pods_of(replica: Replica, version: ReplicaVersion) -> int:
    """Return the number of pods of a version that runs."""
    if not replica.info.scalable:
        return 1
    pods, canary = replica.management.pods, replica.canary_version
    if canary is None:
        return pods
    share = max(1, pods * (canary.canary_percent or 0) // 100)
    if version.id == canary.id:
        return share
    return max(1, pods - share) if version.id == replica.current_version and canary.was_healthy else pods
