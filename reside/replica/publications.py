"""What a replica publishes to its grantees: the permissions that it has granted to each (docs/model.md, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from reside.jazz import CoId, JazzError, NodeClosed
from reside.model.lookup import granted_permissions, pointing_to, target_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from reside.jazz import AccountId, CoMap
    from reside.replica.context import Context

_log = structlog.get_logger(__name__)


class Publications:
    """The maps of all grantees.

    The unique map `granted-permissions:for-account:<accountId>` of the public group points (member `target`) to a map
    that only the grantee can read: permission key → params. Both are kept: a Jazz node builds the content of values
    that nobody keeps again and again.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._kept: dict[str, tuple[CoMap, CoMap]] = {}

    async def publish(self, account: AccountId, keys: Collection[str] | None) -> bool:
        """Publish to a grantee what is granted to it; return whether that succeeded. The log says why not.

        Args:
            account: the grantee.
            keys: the keys of the permissions that may have changed; None: all of the grantee.
        """
        permissions = self._context.rcb.permissions_of(account, keys)
        granted = {p.ref.key: p.expected.params for p in permissions if p.in_force}
        try:
            published = await self._find(account)
            if published is None and granted:
                published = await self._make(account)
            if published is not None:
                _write(published, granted, keys)
        except NodeClosed:
            raise
        except JazzError as error:
            _log.warning("grants can't be published", replica=self._context.name, account=account, error=str(error))
            return False
        return True

    async def _find(self, account: AccountId) -> CoMap | None:
        node, kept = self._context.node, self._kept.get(account)
        pointer = kept[0] if kept else await node.find_unique_map(self._context.public.id, granted_permissions(account))
        target = None if pointer is None else target_of(pointer)
        if pointer is None or target is None:
            return None
        published = kept[1] if kept and kept[1].id == target else await node.load_map(CoId(target))
        self._kept[account] = pointer, published
        return published

    async def _make(self, account: AccountId) -> CoMap:
        context, name = self._context, granted_permissions(account)
        group = context.node.create_group(name)
        await group.add_member(account, "reader")
        published = group.create_map({})
        pointer = await context.node.unique_map(context.public, name)
        pointer.update(pointing_to(published.id))
        return published


def _write(published: CoMap, granted: dict[str, Any], keys: Collection[str] | None) -> None:
    published.update({key: params for key, params in granted.items() if published.get(key) != params})
    for key in list(published) if keys is None else keys:
        if key not in granted and key in published:
            published.delete(key)
