"""The provisioner of the StorageClass `standard`: a folder on this machine for every volume claim.

It runs as a component of a full cluster (`python -m reside.local.provision`). The host path provisioner of the
controller-manager works only for pods that run as root, because others can't write to its folders, and it stores data
in /tmp.

It is level-triggered: each change of volume claims or volumes starts a reconciliation of all of them. `decide` is pure
and returns the actions.
"""

import logging
import shutil
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from reside.common.backoff import Retries

PROVISIONER = "reside.io/local-folder"
STORAGE_CLASS = "standard"
USER = "reside:volume-provisioner"
RESYNC_SECONDS = 60.0
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_REQUESTED = "volume.kubernetes.io/storage-provisioner"
_CLAIMS = "/api/v1/persistentvolumeclaims"
_VOLUMES = "/api/v1/persistentvolumes"
_WATCH_TIMEOUT = httpx2.Timeout(15.0, read=None)  # without events, the API server ends a watch after minutes
_log = logging.getLogger("reside.local.volumes")

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Create:
    """Create a folder and a volume for a volume claim.

    Args:
        folder: name of the folder.
        volume: the PersistentVolume, without its path.
    """

    folder: str
    volume: dict[str, Any]


@dataclass(frozen=True)
class Remove:
    """Remove a volume whose claim was deleted, and its folder.

    Args:
        volume: name of the volume.
        path: folder of its data.
    """

    volume: str
    path: Path


def decide(claims: Iterable[Document], volumes: Iterable[Document]) -> list[Create | Remove]:
    """Return the required actions for all volume claims and all volumes."""
    present = {volume["metadata"]["name"]: volume for volume in volumes}
    creates = [_create(claim) for claim in claims if _is_pending(claim)]
    removes = [
        Remove(name, Path(volume["spec"]["hostPath"]["path"]))
        for name, volume in present.items()
        if _is_ours(volume) and _is_released(volume)
    ]
    return [*(create for create in creates if create.volume["metadata"]["name"] not in present), *removes]


def _is_pending(claim: Document) -> bool:
    annotations = claim["metadata"].get("annotations") or {}
    pending = claim["status"].get("phase") == "Pending" and not claim["spec"].get("volumeName")
    return pending and annotations.get(_REQUESTED) == PROVISIONER


def _is_ours(volume: Document) -> bool:
    return bool((volume["metadata"].get("annotations") or {}).get(_PROVISIONED_BY) == PROVISIONER)


def _is_released(volume: Document) -> bool:
    released = volume["status"].get("phase") in {"Released", "Failed"}
    return released and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"


def _create(claim: Document) -> Create:
    meta, spec = claim["metadata"], claim["spec"]
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"pvc-{meta['uid']}", "annotations": {_PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec["accessModes"],
            "storageClassName": spec["storageClassName"],
            "persistentVolumeReclaimPolicy": "Delete",
            "volumeMode": "Filesystem",
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": meta["namespace"],
                "name": meta["name"],
                "uid": meta["uid"],
            },
        },
    }
    return Create(f"{meta['namespace']}_{meta['name']}_{meta['uid']}", volume)


@dataclass(frozen=True)
class Provisioner:
    """Carry out the actions that `decide` returns.

    Args:
        client: HTTP client of the API server.
        base: folder of all volumes.
    """

    client: httpx2.Client
    base: Path

    def reconcile(self) -> None:
        """List all volume claims and volumes once and carry out the required actions."""
        for action in decide(self._list(_CLAIMS), self._list(_VOLUMES)):
            if isinstance(action, Create):
                self._create_volume(action)
            else:
                self._remove(action)

    def _list(self, path: str) -> list[Document]:
        items: list[Document] = self.client.get(path).raise_for_status().json()["items"]
        return items

    def _create_volume(self, create: Create) -> None:
        folder = self.base / create.folder
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o777)  # pods run as any user; the parent folder denies access to other users of the machine
        spec = {**create.volume["spec"], "hostPath": {"path": str(folder), "type": "Directory"}}
        response = self.client.post(_VOLUMES, json={**create.volume, "spec": spec})
        if response.status_code != httpx2.codes.CONFLICT:
            response.raise_for_status()
            _log.info("created %s", folder)

    def _remove(self, remove: Remove) -> None:
        if remove.path.parent != self.base or remove.path.name == "..":
            _log.error("volume %s is not in %s: not deleted", remove.volume, self.base)
            return
        if remove.path.exists():
            shutil.rmtree(remove.path)
        response = self.client.delete(f"{_VOLUMES}/{remove.volume}")
        if response.status_code != httpx2.codes.NOT_FOUND:
            response.raise_for_status()
            _log.info("removed %s", remove.path)


def watch(client: httpx2.Client, path: str, changed: threading.Event, stop: threading.Event) -> None:
    """Set `changed` when an object under `path` changes, and when changes may have been missed."""
    retries = Retries()
    while not stop.is_set():
        try:
            version = client.get(path, params={"limit": 1}).raise_for_status().json()["metadata"]["resourceVersion"]
            changed.set()
            options = {"watch": "true", "resourceVersion": version}
            with client.stream("GET", path, params=options, timeout=_WATCH_TIMEOUT) as stream:
                stream.raise_for_status()
                for _ in stream.iter_lines():
                    changed.set()
                    retries.succeeded()
        except httpx2.HTTPError as error:
            _log.warning("watch of %s failed: %s", path, error)
        stop.wait(retries.failed())


def run(provisioner: Provisioner, ready: threading.Event) -> None:
    """Reconcile after every change, forever; set `ready` after the first success."""
    changed, stop = threading.Event(), threading.Event()
    for path in (_CLAIMS, _VOLUMES):
        threading.Thread(target=watch, args=(provisioner.client, path, changed, stop), daemon=True).start()
    retries = Retries()
    while True:
        changed.wait(RESYNC_SECONDS)
        changed.clear()
        try:
            provisioner.reconcile()
        except (httpx2.HTTPError, OSError) as error:
            pause = retries.failed()
            _log.warning("reconciliation failed, retry in %.1f s: %s", pause, error)
            stop.wait(pause)
            changed.set()
        else:
            retries.succeeded()
            ready.set()
