"""The statuses of a replica's versions, computed from the Sentinel's report of its stack. Pure.

Live state decides, with two exceptions that depend on history: a version without an object and without pods has
stopped, if the Sentinel has applied the desired stack and the object is not in it; and a completed version stays
completed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.alpha.stacks import system
from reside.model.names import workload_name
from reside.model.stacks import object_key
from reside.model.status import version_status

if TYPE_CHECKING:
    from reside.model.entities import Replica, ReplicaVersion
    from reside.model.stacks import DesiredStack, StackReport
    from reside.model.status import VersionStatus


def changed_statuses(replica: Replica, stack: DesiredStack, report: StackReport) -> dict[int, VersionStatus]:
    """Return the new status of each version whose status has changed.

    Args:
        replica: the replica with its versions.
        stack: its desired stack.
        report: the Sentinel's report of that stack.
    """
    if not system.is_rendered(replica.identity):
        return {}
    found = {version.id: _status(replica, version, stack, report) for version in replica.versions}
    return {version.id: found[version.id] for version in replica.versions if found[version.id] != version.status}


def newly_starting(replica: Replica, stack: DesiredStack) -> dict[int, VersionStatus]:
    """Return `starting` for the current version if its status is `unknown` and the stack contains its workload.

    With this status the version counts as running for the rollout, so that the next version does not start beside it.
    """
    if replica.current_version is None:
        return {}
    version = replica.version(replica.current_version)
    declared = _key(replica, version) in {object_key(manifest) for manifest in stack.objects}
    return {version.id: "starting"} if declared and version.status == "unknown" else {}


def _key(replica: Replica, version: ReplicaVersion) -> str:
    return f"{'Job' if replica.info.kind == 'oneshot' else 'Deployment'}/{workload_name(replica.name, version.id)}"


def _status(replica: Replica, version: ReplicaVersion, stack: DesiredStack, report: StackReport) -> VersionStatus:
    current = version.id == replica.current_version
    key = _key(replica, version)
    seen = report.objects.get(key)
    if version.status == "completed":
        return "completed"
    if seen is not None and seen.live is None and seen.pods:
        return version.status  # its object is deleted, but its pods still run
    if seen is not None:
        return version_status(seen, current=current)
    if key in {object_key(manifest) for manifest in stack.objects}:
        return "error" if current and report.error else version.status
    applied = report.revision == stack.revision
    return "stopped" if applied and version.status != "unknown" else version.status
