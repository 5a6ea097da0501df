"""Runs of a restore at the same time, on a real API server: only the later one goes on once the volumes are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.sentinel import new_namespace

from reside.access.client import connect
from reside.access.target import Target
from reside.model.errors import Conflict, InvalidInput
from reside.seed.backups import restoring
from reside.seed.backups.archive import Manifest

if TYPE_CHECKING:
    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio
BACKUP = Manifest("4f", "2026-01-02T03:04:05+00:00", "reside", "co_zAlpha")


async def test_a_run_that_was_believed_dead_starts_nothing(cluster: ClusterInfo) -> None:
    target = Target(new_namespace(cluster), "direct", str(cluster.kubeconfig), cluster.context, 5.0)
    async with connect(target) as client:
        first = await restoring._begin(client, BACKUP)
        second = await restoring._begin(client, BACKUP)
        assert (first.is_complete, second.is_complete) == (False, False)
        with pytest.raises(Conflict, match="another `reside cluster restore` or `delete` works on namespace"):
            await restoring._complete(client, first)
        await restoring._complete(client, second)
        assert (await restoring._begin(client, BACKUP)).is_complete
        with pytest.raises(InvalidInput, match="unfinished restore of another backup"):
            await restoring._begin(client, Manifest("50", BACKUP.created, "reside", "co_zAlpha"))
        for _ in range(2):
            await restoring._end(client)
        with pytest.raises(Conflict):
            await restoring._complete(client, second)
