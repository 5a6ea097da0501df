"""Reconciliation of one replica: live state → version statuses → grants and desired stack.

Level-triggered: a pass reads the report and the current data, and writes what differs. It keeps nothing in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from reside.alpha import records
from reside.alpha.endpoints import sync_endpoint
from reside.alpha.granting.sync import Grantee, sync_grants
from reside.alpha.rendering import render_replica, template_change
from reside.alpha.status import changed_statuses, newly_starting
from reside.alpha.versions import sync_providers
from reside.jazz import ValueDeleted
from reside.model.constants import AGENT_SECRET_KEY

if TYPE_CHECKING:
    from reside.alpha.granting.blocks import Blocks
    from reside.alpha.records import ReplicaRecord
    from reside.alpha.state import Alpha
    from reside.model.entities import Replica, TemplateChange
    from reside.model.stacks import DesiredStack, StackReport
    from reside.model.status import VersionStatus

_log = structlog.get_logger(__name__)


async def reconcile_replica(alpha: Alpha, blocks: Blocks, number: int) -> None:
    """Update a replica's grants, the statuses of its versions from live state, and its desired stack.

    Raises:
        NotReady: the Sentinel can't be reached yet.
    """
    record = await records.find_replica(alpha.data, number)
    if record is None:
        return
    await sync_providers(alpha, record)
    await sync_grants(alpha, blocks, Grantee(record.value.account, record.value))
    await sync_endpoint(alpha, blocks, record.value)
    await alpha.sentinel.open()  # raises before anything else is written
    replica = await _update_statuses(alpha, record)
    if replica is not record.value:
        await sync_grants(alpha, blocks, Grantee(replica.account, replica))
    stack = await render_replica(alpha, replica)
    if stack.objects:
        _write_statuses(record, newly_starting(replica, stack))
        await _declare(alpha, stack)
    _write_template_change(record, replica, template_change(alpha, replica, stack))


async def _update_statuses(alpha: Alpha, record: ReplicaRecord) -> Replica:
    """Write the statuses that have changed, and return the replica with them."""
    last = await alpha.sentinel.read_desired(record.value.name)
    if last is None:
        return record.value
    report = await alpha.sentinel.read_report(record.value.name)
    changed = changed_statuses(record.value, last, report)
    _write_statuses(record, changed)
    await _delete_agent_secret(alpha, record, report)
    if changed:
        await alpha.node.flush()
    return with_statuses(record.value, changed) if changed else record.value


def _write_statuses(record: ReplicaRecord, changed: dict[int, VersionStatus]) -> None:
    for version, status in changed.items():
        _log.info("version status", replica=record.value.name, version=version, status=status)
        record.versions[version].set("status", status)


def _write_template_change(record: ReplicaRecord, replica: Replica, change: TemplateChange | None) -> None:
    """Store what a new pod template would change in the current version, for administrators to see."""
    for version in replica.versions:
        now = change if version.id == replica.current_version else None
        if version.template_change != now:
            member = {} if now is None else {"templateChange": now.document()}
            record.versions[version.id].update(member, unset=() if member else ("templateChange",))


def with_statuses(replica: Replica, changed: dict[int, VersionStatus]) -> Replica:
    """Return the replica with new statuses for some versions."""
    versions = tuple(v.model_copy(update={"status": changed.get(v.id, v.status)}) for v in replica.versions)
    return replica.model_copy(update={"versions": versions})


async def _declare(alpha: Alpha, stack: DesiredStack) -> None:
    """Declare a stack. A stack that has changed is declared only while this Alpha leads."""
    last = await alpha.sentinel.read_desired(stack.name)
    if alpha.lease is not None and (last is None or last.revision != stack.revision):
        await alpha.lease.check()
    await alpha.sentinel.declare(stack)


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
