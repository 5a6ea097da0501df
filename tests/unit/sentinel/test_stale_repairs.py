"""A repair that begins with an older live state does not take a yielded field from who has just set it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from unit.sentinel.repair_setup import DictApi, Setup, new_setup, stored

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL
from reside.sentinel.errors import ClusterRefused

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio
KEY = "Deployment/web"
Entry = dict[str, Any]


def manager(name: str, fields: Entry, operation: str = "Update") -> Entry:
    return {"manager": name, "operation": operation, "apiVersion": "apps/v1", "fieldsType": "FieldsV1"} | {
        "fieldsV1": fields
    }


AUTOSCALER = manager("autoscaler", {"f:spec": {"f:replicas": {}}})
EDIT = manager("kubectl-edit", {"f:spec": {"f:paused": {}}})


def deployment(version: str = "", replicas: int = 2, *managers: Entry) -> dict[str, Any]:
    """Return a Deployment that yields its number of replicas."""
    meta: dict[str, Any] = {
        "name": "web",
        "labels": {MANAGED_BY_LABEL: FIELD_MANAGER},
        "annotations": {"reside.io/yield": "spec.replicas"},
    }
    if version:
        meta |= {"resourceVersion": version, "uid": "u", "managedFields": list(managers)}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {"replicas": replicas}}


class VersionedApi(DictApi):
    """Refuses what names another version than the live one, as the API server does; the watch is late."""

    live: dict[str, Any]

    def note(self, live: dict[str, Any]) -> None:
        """Let the watch show a live state."""
        self.live = live
        self.cache.note("MODIFIED", live)

    async def get(self, key: str) -> dict[str, Any] | None:
        """Return what is live."""
        return self.live if key == KEY else None

    async def set_managers(self, live: dict[str, Any], entries: list[Entry]) -> dict[str, Any]:
        """Make a new version with these managers."""
        version = str(int(live["metadata"]["resourceVersion"]) + 1)
        self.live = live | {"metadata": live["metadata"] | {"resourceVersion": version, "managedFields": entries}}
        return self.live

    async def apply(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Make a new version, unless the manifest names an older one."""
        wanted = manifest["metadata"].get("resourceVersion", self.live["metadata"]["resourceVersion"])
        if wanted != self.live["metadata"]["resourceVersion"]:
            self.note(self.live)  # the watch has caught up when it is tried again
            raise ClusterRefused("the object has been modified", 409)
        self.applied.append(KEY)
        spec = {name: value for name, value in self.live["spec"].items() if name != "paused"} | manifest["spec"]
        version = str(int(wanted) + 1)
        meta = self.live["metadata"] | {"resourceVersion": version}
        if "replicas" in manifest["spec"]:
            meta["managedFields"] = [each for each in meta["managedFields"] if each["manager"] != "autoscaler"]
        self.note(self.live | {"spec": spec, "metadata": meta})
        return self.live


async def repaired(setup: Setup, seen: dict[str, Any], live: dict[str, Any]) -> dict[str, Any]:
    """Let the watch show a state when the API server has a later one already, and return what is live at the end."""
    api = VersionedApi(setup.cache)
    setup.repairer._api = api
    api.live = live
    setup.cache.note("MODIFIED", seen)
    await setup.repairer.settled()
    assert api.applied
    return api.live


def edited(version: str, replicas: int, *managers: Entry) -> dict[str, Any]:
    """Return a live Deployment that somebody has paused by hand."""
    found = deployment(version, replicas, EDIT, *managers)
    return found | {"spec": found["spec"] | {"paused": True}}


async def test_a_repair_does_not_take_a_field_that_was_set_meanwhile(tmp_path: Path) -> None:
    declared = deployment()
    declared["spec"]["paused"] = False
    async with new_setup(tmp_path, stored(declared), live=[deployment("1")]) as setup:
        found = await repaired(setup, edited("2", 2), edited("3", 7, AUTOSCALER))
        assert (found["spec"]["replicas"], found["spec"]["paused"]) == (7, False)
        assert any(each["manager"] == "autoscaler" for each in found["metadata"]["managedFields"])
