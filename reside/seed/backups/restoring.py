"""Restore a cluster from a backup into an empty namespace.

The order is that of dependence: Secrets and volumes, then what the Sentinel needs to run. The Sentinel then makes all
other objects again, from the stacks on its volume. The ConfigMap `reside-restore` marks an unfinished restore, and says
whether the volumes are complete: a second run continues there, and never writes a volume that pods use. If both runs
are still alive, only the later one starts pods.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import ConfigMap
from lightkube.types import PatchType

from reside.access.client import connect, is_missing
from reside.access.objects import read
from reside.model.constants import (
    ALPHA_NAME,
    ETCD_NAME,
    JAZZ_NAME,
    RESTORE_MARKER,
    SENTINEL_NAME,
    SENTINEL_STATE_DIR,
    SENTINEL_VOLUME_CLAIM,
)
from reside.model.errors import Conflict, InvalidInput
from reside.seed.backups import pods
from reside.seed.backups.archive import JAZZ, SENTINEL
from reside.seed.backups.objects import apply, of_kinds, present
from reside.seed.kubernetes import ensure_namespace, wait_for_replica, wait_for_stateful_set

if TYPE_CHECKING:
    from collections.abc import Callable

    import lightkube

    from reside.access.target import Target
    from reside.seed.backups.archive import Archive, Manifest

_BACKUP, _VOLUMES, _RUN = "backup", "volumes", "run"
_COMPLETE: Final = "complete"
_SHOWN: Final = 8
_VOLUMES_OF: Final = (
    (SENTINEL, SENTINEL_VOLUME_CLAIM, SENTINEL_STATE_DIR, "unpack", SENTINEL_STATE_DIR),
    (JAZZ, JAZZ_NAME, "/data", "write", pods.DATABASE),
)
"""Member of the backup, its volume claim, where a pod has the volume, and how the member is written to it."""


async def restore(target: Target, archive: Archive, report: Callable[[str, str], None]) -> Manifest:
    """Restore a cluster. A run that was interrupted is continued by the next one.

    Args:
        target: where to; its namespace is that of the backup, and empty.
        archive: the backup.
        report: called with each step and its event.

    Raises:
        InvalidInput: the backup is damaged or of another namespace, or the namespace is not empty.
        NotReady: a part was not ready in time; another run continues.
        Conflict: another run has begun since.
    """
    report("check of the file", "started")
    manifest, objects = archive.check()
    report("check of the file", "done")
    if manifest.namespace != target.namespace:
        raise InvalidInput(
            f"the backup is of namespace {manifest.namespace}, which its objects name: restore it there, not into "
            f"{target.namespace}; another Kubernetes cluster may have that namespace, too"
        )
    async with connect(target) as client:
        await ensure_namespace(client, target.namespace)
        mark = await _begin(client, manifest)
        if not mark.is_complete:
            await _fill(target, client, archive, objects, report)
            await _complete(client, mark)
        await _start(client, objects, target.deadline, report)
        await _end(client)
    return manifest


@dataclass(frozen=True)
class _Mark:
    """The mark of a run.

    Attributes:
        is_complete: whether the volumes are complete.
        version: resource version of the ConfigMap: a later run changes it.
    """

    is_complete: bool
    version: str


async def _begin(client: lightkube.AsyncClient, manifest: Manifest) -> _Mark:
    """Mark the restore, or take over the mark of an earlier run.

    Raises:
        InvalidInput: the namespace is not empty, or another backup is being restored.
    """
    marker = await _marker(client)
    if marker is None:
        found = await present(client)
        if found:
            shown = ", ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
            raise InvalidInput(
                f"namespace {client.namespace} is not empty, it has {shown}: remove the cluster there with `reside "
                "cluster delete`, or what else is there, and wait until it is gone"
            )
        metadata = {"name": RESTORE_MARKER, "namespace": client.namespace}
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {_BACKUP: manifest.id}}
        body: Any = ConfigMap.from_dict(document)
        return _Mark(is_complete=False, version=_version(await client.create(body)))
    if marker.get(_BACKUP) != manifest.id:
        raise InvalidInput(
            f"namespace {client.namespace} has the unfinished restore of another backup: restore that one, or remove "
            "it with `reside cluster delete`"
        )
    taken = await _patch(client, {"data": {_RUN: secrets.token_hex(8)}})
    return _Mark((taken.data or {}).get(_VOLUMES) == _COMPLETE, _version(taken))


async def _complete(client: lightkube.AsyncClient, mark: _Mark) -> None:
    """Note that the volumes are complete.

    Raises:
        Conflict: another run has begun since, and may be writing them.
    """
    try:
        await _patch(client, {"metadata": {"resourceVersion": mark.version}, "data": {_VOLUMES: _COMPLETE}})
    except ApiError as error:
        if error.status.code != HTTPStatus.CONFLICT and not is_missing(error):
            raise
        raise Conflict(
            f"another `reside cluster restore` or `delete` works on namespace {client.namespace}: wait for its end, "
            "and try again if the cluster does not run then"
        ) from None


async def _end(client: lightkube.AsyncClient) -> None:
    """Remove the mark, unless another run has."""
    try:
        await client.delete(ConfigMap, RESTORE_MARKER)
    except ApiError as error:
        if not is_missing(error):
            raise


async def _patch(client: lightkube.AsyncClient, change: dict[str, Any]) -> ConfigMap:
    return await client.patch(ConfigMap, RESTORE_MARKER, change, patch_type=PatchType.MERGE)


def _version(marker: ConfigMap) -> str:
    return str(marker.metadata and marker.metadata.resourceVersion)


async def _marker(client: lightkube.AsyncClient) -> dict[str, str] | None:
    found = await read(client, ConfigMap, RESTORE_MARKER)
    return None if found is None else dict(found.data or {})


async def _fill(
    target: Target,
    client: lightkube.AsyncClient,
    archive: Archive,
    objects: list[dict[str, Any]],
    report: Callable[[str, str], None],
) -> None:
    """Create Secrets and volumes, and write the volumes. The volumes are used by no other pod then."""
    for document in of_kinds(objects, "Secret", "ConfigMap", "PersistentVolumeClaim"):
        await apply(client, document)
    like = of_kinds(objects, "Deployment")[0]["spec"]["template"]["spec"]
    for member, claim, folder, action, path in _VOLUMES_OF:
        report(f"volume {claim}", "started")
        pod = await pods.start(client, pods.writer_pod(claim, folder, like), target.deadline)
        async with pods.program(target, pod, action, path) as writer:
            await writer.finish(archive.parts(member))
        await pods.end(client, pod, target.deadline)
        report(f"volume {claim}", "done")


async def _start(
    client: lightkube.AsyncClient, objects: list[dict[str, Any]], deadline: float, report: Callable[[str, str], None]
) -> None:
    """Create what the Sentinel needs, and wait for it and for those that it starts."""
    report("cluster", "started")
    for document in of_kinds(objects, "ServiceAccount", "Role", "RoleBinding", "Service", "StatefulSet", "Deployment"):
        await apply(client, document)
    for name in (JAZZ_NAME, ETCD_NAME):
        await wait_for_stateful_set(client, name, deadline)
    for name in (SENTINEL_NAME, ALPHA_NAME):
        await wait_for_replica(client, name, deadline)
    report("cluster", "done")
