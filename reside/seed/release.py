"""What a running cluster is made of, and what an upgrade changes in it. Nothing here changes the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lightkube.resources.apps_v1 import StatefulSet
from lightkube.resources.core_v1 import PersistentVolumeClaim

from reside.access.objects import read
from reside.model.applied import as_applied
from reside.model.constants import ENGINE_SECRET, ETCD_NAME, FIELD_MANAGER, JAZZ_NAME
from reside.model.kinds import BY_KIND
from reside.seed import platform
from reside.seed.teardown import resource_class
from reside.sentinel.objects.differences import changes
from reside.sentinel.objects.managed_fields import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import lightkube

    from reside.seed.settings import BootstrapSettings
    from reside.sentinel.objects.differences import Change

STORAGE: Final = (JAZZ_NAME, ETCD_NAME)


@dataclass(frozen=True)
class Upgrade:
    """What an upgrade changes.

    Attributes:
        images: name of an image → its digest now and then, for those that change.
        objects: `Kind/name` of an object of the platform → its changes, each as a line.
    """

    images: Mapping[str, tuple[str, str]]
    objects: Mapping[str, Sequence[str]]

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not self.images and not self.objects


async def storage_settings(client: lightkube.AsyncClient) -> dict[str, Any]:
    """Return the settings that only the objects of Jazz and its volume have."""
    claim = await client.get(PersistentVolumeClaim, JAZZ_NAME)
    jazz = await client.get(StatefulSet, JAZZ_NAME)
    found: dict[str, Any] = {}
    if claim.spec is not None:
        found["storage_class"] = claim.spec.storageClassName
        found["storage_size"] = (claim.spec.resources.requests or {}).get("storage") if claim.spec.resources else None
    containers = jazz.spec.template.spec.containers if jazz.spec and jazz.spec.template.spec else []
    found["jazz_mode"] = next((e.value for c in containers for e in c.env or () if e.name == "MODE"), None)
    return {member: value for member, value in found.items() if value is not None}


async def storage_images(client: lightkube.AsyncClient) -> dict[str, str]:
    """Return the images of Jazz and etcd."""
    found = {}
    for name in STORAGE:
        stateful = await client.get(StatefulSet, name)
        if stateful.spec and stateful.spec.template.spec:
            found[name] = str(stateful.spec.template.spec.containers[0].image)
    return found


def changed_images(running: Mapping[str, str], settings: BootstrapSettings) -> dict[str, tuple[str, str]]:
    """Return the images whose digests change: name → digest now and then.

    Args:
        running: name → `image@digest` in the cluster; a half-made cluster lacks some.
        settings: those of the upgrade.
    """
    wanted = settings.images.model_dump(by_alias=True)
    digests = {
        name: (running.get(name, "").rpartition("@")[2], image.rpartition("@")[2]) for name, image in wanted.items()
    }
    return {name: (now, then) for name, (now, then) in digests.items() if now != then}


def _digest(image: str) -> str:
    return image.rpartition("@")[2]


async def changed_objects(client: lightkube.AsyncClient, settings: BootstrapSettings) -> dict[str, list[str]]:
    """Return the changes of the platform's objects, as the API server computes them; nothing is written."""
    found = {}
    for document in platform.platform_stack(settings, ""):
        key = f"{document['kind']}/{document['metadata']['name']}"
        if key == f"Secret/{ENGINE_SECRET}":  # its value stays
            continue
        body = resource_class(BY_KIND[document["kind"]]).from_dict(as_applied(document, settings.namespace))
        after = await client.apply(body, field_manager=FIELD_MANAGER, force=True, dry_run=True)
        before = await read(client, type(body), document["metadata"]["name"])
        if before is None:
            found[key] = ["is created"]
        elif lines := [_line(change) for change in changes(before.to_dict(), after.to_dict())]:
            found[key] = lines
    return found


def _line(change: Change) -> str:
    before, after = ("absent" if value is None else value for value in (change.before, change.after))
    return f"{shown(change.path)}: {before} → {after}"
