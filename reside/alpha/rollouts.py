"""Reconciliation of one replica: live state → version statuses → grants and desired stack.

Level-triggered: a pass reads the report and the current data, and writes what differs. It keeps nothing in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from reside.alpha import lookups, records
from reside.alpha.canary import end_canary
from reside.alpha.endpoints import sync_endpoint
from reside.alpha.granting.sync import Grantee, sync_grants
from reside.alpha.health import next_deadline_s
from reside.alpha.lock_access import sync_access
from reside.alpha.rendering import render_replica, template_change
from reside.alpha.rolling_back import roll_back
from reside.alpha.status import changed_versions, newly_starting, reported_versions
from reside.alpha.versions import retire_versions, sync_providers
from reside.common import tracing
from reside.jazz import ValueDeleted
from reside.model import lookup
from reside.model.constants import AGENT_SECRET_KEY

if TYPE_CHECKING:
    from reside.alpha.granting.blocks import Blocks
    from reside.alpha.records import ReplicaRecord
    from reside.alpha.state import Alpha
    from reside.model.entities import Replica, ReplicaVersion, TemplateChange
    from reside.model.reports import StackReport
    from reside.model.stacks import DesiredStack

_log = structlog.get_logger(__name__)


async def reconcile_replica(alpha: Alpha, blocks: Blocks, record: ReplicaRecord) -> float | None:
    """Update a replica's grants, the statuses of its versions from live state, and its desired stack.

    Returns:
        the seconds after which the replica must be looked at again; None if only a change makes that necessary.

    Raises:
        NotReady: the Sentinel can't be reached yet.
    """
    await sync_providers(alpha, record)
    await sync_grants(alpha, blocks, Grantee(record.value.account, record.value))
    await sync_endpoint(alpha, blocks, record.value)
    await sync_access(alpha, blocks, record.value)
    await alpha.sentinel.open()  # raises before anything else is written
    report = await alpha.sentinel.read_report(record.value.name)
    reported = reported_versions(record.value, report)
    if not reported <= record.versions.keys():  # of a version that had ended, there is something again
        record = await records.read_active(alpha.data, record.map.id, also=reported)
    replica = await _update_versions(alpha, record, report)
    if await roll_back(alpha, record, replica) or await end_canary(alpha, record, replica):
        return 0.0
    if replica is not record.value:
        await sync_grants(alpha, blocks, Grantee(replica.account, replica))
    stack = await render_replica(alpha, replica)
    if stack.objects:
        for version, status in newly_starting(replica, stack).items():
            record.versions[version].set("status", status)
        await _declare(alpha, replica, stack)
    _write_template_change(record, replica, template_change(alpha, replica, stack))
    await retire_versions(alpha, record, replica, reported)
    return next_deadline_s(replica, alpha.node.now_ms())


async def _update_versions(alpha: Alpha, record: ReplicaRecord, report: StackReport) -> Replica:
    """Write what has changed of the versions, and return the replica with them."""
    last = await alpha.sentinel.read_desired(record.value.name)
    if last is None:
        return record.value
    changed = changed_versions(record.value, last, report, alpha.node.now_ms())
    for version in changed.values():
        _write_version(record, version)
    await _delete_agent_secret(alpha, record, report)
    if changed:
        await alpha.node.flush()
    return with_versions(record.value, changed) if changed else record.value


def _write_version(record: ReplicaRecord, version: ReplicaVersion) -> None:
    """Write the members of a version that have changed; a member that is None is removed."""
    before, after = record.value.version(version.id).document(), version.document()
    if version.status != record.value.version(version.id).status:
        _log.info("version status", replica=record.value.name, version=version.id, status=version.status)
    members = {name: value for name, value in after.items() if before.get(name) != value}
    record.versions[version.id].update(members, unset=[name for name in before if name not in after])


def _write_template_change(record: ReplicaRecord, replica: Replica, change: TemplateChange | None) -> None:
    """Store what a new pod template would change in the current version, for administrators to see."""
    for version in replica.versions:
        now = change if version.id == replica.current_version else None
        if version.template_change != now:
            member = {} if now is None else {"templateChange": now.document()}
            record.versions[version.id].update(member, unset=() if member else ("templateChange",))


def with_versions(replica: Replica, changed: dict[int, ReplicaVersion]) -> Replica:
    """Return the replica with other values of some versions."""
    versions = tuple(changed.get(v.id, v) for v in replica.versions)
    return replica.model_copy(update={"versions": versions})


async def _declare(alpha: Alpha, replica: Replica, stack: DesiredStack) -> None:
    """Declare a stack. A stack that has changed is declared only while this Alpha leads."""
    last = await alpha.sentinel.read_desired(stack.name)
    if last is not None and last.revision == stack.revision:
        await alpha.sentinel.declare(stack)
        return
    with tracing.step("declare a stack", await _cause(alpha, replica), {"reside.stack": stack.name}):
        if alpha.lease is not None:
            await alpha.lease.check()
        await alpha.sentinel.declare(stack)


async def _cause(alpha: Alpha, replica: Replica) -> str | None:
    """Return the trace of the load whose version is rolled out; None if the current version was healthy already."""
    current = next((version for version in replica.versions if version.id == replica.current_version), None)
    if current is None or current.request is None or current.was_healthy:
        return None
    target = await lookups.find(alpha.data, lookup.load_request_by_id(current.request))
    request = await records.request_at(alpha.data, target)
    return None if request is None else request.traceparent


async def _delete_agent_secret(alpha: Alpha, record: ReplicaRecord, report: StackReport) -> None:
    """Delete the map of the agent secret once the live Secret contains it; the Sentinel stores it encrypted.

    The sync server then erases its content, history included: an overwritten or removed member would stay readable in
    the history for everyone who ever gets the key of the group.
    """
    seen = report.objects.get(f"Secret/{record.value.name}")
    live = (seen.live or {}) if seen is not None and seen.status == "updated" else {}
    if record.value.agent_secret is None or AGENT_SECRET_KEY not in (live.get("data") or {}):
        return
    try:
        secret = await alpha.node.load_map(record.value.agent_secret)
    except ValueDeleted:
        return
    if not secret.deleted:
        secret.destroy()
        _log.info("agent secret deleted from Jazz", replica=record.value.name)
        await alpha.node.flush()
