"""The replicas of a cluster, read from Alpha's data, as rows for `reside replica list`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from reside.cli.listing import Column, age, short_digest, status_style
from reside.jazz import CoList, CoMap, Node, ValueNotFound
from reside.model.alpha_contract import READ_REPLICAS, REPLICAS
from reside.model.entities import ReplicaVersion
from reside.model.errors import NotAllowed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

COLUMNS = (
    Column("id"),
    Column("name"),
    Column("version", header="ver"),
    Column("status", style=status_style),
    Column("since", short=age, header="age"),
    Column("digest", short=short_digest),
    Column("image", wide=True),
    Column("note"),
)
SETTLE_S = 0.1
"""Seconds to collect changes before the list is read again."""

Row = dict[str, Any]


def note(
    name: Any,
    current: ReplicaVersion | None,
    versions: Collection[ReplicaVersion],
    canary: ReplicaVersion | None = None,
) -> str | None:
    """Return what an operator should know about a replica besides its status; None if there is nothing."""
    if current is None:
        return None
    if current.reason is not None:
        return current.reason
    if canary is not None:
        why = f" ({canary.reason})" if canary.reason else ""
        return f"canary: version {canary.id} is {canary.status}{why}, with {canary.canary_percent} % of the pods"
    last = max(versions, key=lambda version: version.id)
    if last.rolled_back_to is not None:
        return ended(last)
    return f"outdated pod template: `reside replica refresh {name}`" if current.template_change else None


def ended(version: ReplicaVersion) -> str:
    """Return how a version ended that was rolled back, or that was a canary and was aborted."""
    how = "was rolled back" if version.canary_percent is None else "was a canary and was aborted"
    return f"version {version.id} {how}" + (f": {version.reason}" if version.reason else "")


def _version(version: ReplicaVersion, since: int | None) -> Row:
    return {
        "id": version.id,
        "status": version.status,
        "since": since,
        "digest": version.digest,
        "request": version.request,
        "reason": version.reason,
        "wasHealthy": version.was_healthy,
        "canaryPercent": version.canary_percent,
        "rolledBackTo": version.rolled_back_to,
    }


def _requirements(version: ReplicaVersion | None) -> list[Row]:
    return [
        {
            "key": key,
            "contract": found.contract,
            "replicas": [each.id for each in found.replicas],
            "permissions": [
                {"permission": each.permission, "instanceId": each.instance_id} for each in found.permissions
            ],
        }
        for key, found in (version.requirements.items() if version else ())
    ]


class ReplicaView:
    """Alpha's replicas with their versions. Each value is loaded once; later changes arrive by subscription."""

    def __init__(self, node: Node, data: CoMap) -> None:
        self._node = node
        self._data = data
        self._changed = asyncio.Event()
        self._subscribed: set[str] = set()

    async def rows(self) -> list[Row]:
        """Return one row for each replica, sorted by id.

        Raises:
            NotAllowed: the account may not read replicas.
        """
        entries = await self._list(self._data, REPLICAS)
        rows = [await self._row(await self._map(str(entry))) for entry in entries]
        return sorted(rows, key=lambda row: row["id"])

    async def changes(self) -> AsyncIterator[list[Row]]:
        """Yield the rows now and after each change."""
        while True:
            self._changed.clear()
            yield await self.rows()
            await self._changed.wait()
            await asyncio.sleep(SETTLE_S)

    async def _row(self, replica: CoMap) -> Row:
        versions = [await self._map(str(entry)) for entry in await self._list(replica, "versions")]
        parsed = {v.id: v for v in (ReplicaVersion.model_validate(version.as_dict()) for version in versions)}
        since = {version.get("id"): version.created_at for version in versions}
        number = replica.get("currentVersion")
        current = parsed.get(number) if isinstance(number, int) else None
        canary = parsed.get(replica.get("canary") or 0)
        if canary is not None and canary.rolled_back_to is not None:
            canary = None
        identity = str(replica.get("identity"))
        return {
            "id": replica.get("id"),
            "name": replica.get("name"),
            "class": (replica.get("info") or {}).get("class"),
            "version": number,
            "status": "deleting" if replica.get("deletion") else current.status if current else "unknown",
            "since": since.get(number),
            "digest": current.digest if current else None,
            "image": f"{identity}@{current.digest}" if current else identity,
            "requested": current.image if current else None,
            "identity": identity,
            "account": replica.get("account"),
            "owner": replica.get("owner"),
            "implements": sorted(current.implementations.values()) if current else [],
            "requires": _requirements(current),
            "canary": None if canary is None else canary.id,
            "note": note(replica.get("name"), current, parsed.values(), canary),
            "reason": current.reason if current else None,
            "templateChange": current.template_change.document() if current and current.template_change else None,
            "versions": [_version(version, since.get(version.id)) for version in parsed.values()],
        }

    async def _list(self, owner: CoMap, member: str) -> CoList:
        found = await self._node.load_list(str(owner[member]))
        if found.group.my_role is None:
            raise NotAllowed(
                f"{member} can't be read: the account needs {READ_REPLICAS} "
                "(`reside cluster claim-super-admin-access` for the first administrator)"
            )
        self._subscribe(found)
        return found

    async def _map(self, reference: str) -> CoMap:
        try:
            found = await self._node.load_map(reference)
        except ValueNotFound as error:
            raise NotAllowed(f"a replica can't be read: {error}") from None
        self._subscribe(found)
        return found

    def _subscribe(self, value: CoMap | CoList) -> None:
        if value.id not in self._subscribed:
            self._subscribed.add(value.id)
            value.on_change(lambda _value: self._changed.set())
