"""Finds out which objects the Kubernetes provider would replace, before the command line runs an `up`.

The resident engine itself prevents replacements (engine/internal/operation/steady.go). The command line has no such
hook, so the properties for which the provider asks for a replacement are listed here, for its pinned release; an object
that may not be replaced is refused before. Pure.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from reside.sentinel.engine.events import object_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reside.sentinel.engine.declaration import DeclaredResource

FORCED: Final[dict[str, tuple[str, ...]]] = {
    "Deployment": ("spec.selector",),
    "StatefulSet": (
        "spec.podManagementPolicy",
        "spec.revisionHistoryLimit",
        "spec.selector",
        "spec.serviceName",
        "spec.volumeClaimTemplates",
    ),
    "Job": ("spec.completions", "spec.parallelism", "spec.selector", "spec.template"),
    "PersistentVolumeClaim": ("spec.accessModes", "spec.selector", "spec.storageClassName", "spec.volumeName"),
    "Secret": ("type",),
    "Service": ("spec.clusterIP",),
    "RoleBinding": ("roleRef",),
}
"""Kind → properties (provider 4.25, provider/pkg/provider/diff.go)."""
_IMMUTABLE: Final = {"Secret": ("data", "stringData"), "ConfigMap": ("data", "binaryData")}
"""The same for objects with `immutable: true`."""
_SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
"""The member that marks an encrypted value in a state; `plaintext` has its JSON if secrets are shown."""


def refused(state: dict[str, Any], resources: Iterable[DeclaredResource]) -> tuple[str, tuple[str, ...]] | None:
    """Return the first object (`Kind/name`) that would be replaced and may not be, with the paths; None if none would.

    Args:
        state: the exported state of the stack, with secrets shown.
        resources: the declared resources.
    """
    before = {
        object_of(found["urn"]): found.get("inputs") or {}
        for found in (state.get("deployment") or {}).get("resources") or ()
        if not found.get("delete")
    }
    for resource in resources:
        key = f"{resource.type.rpartition(':')[2]}/{resource.name}"
        if not resource.replace and key in before and (paths := _changed(before[key], resource.inputs)):
            return key, paths
    return None


def _changed(old: dict[str, Any], new: dict[str, Any]) -> tuple[str, ...]:
    kind = str(new.get("kind"))
    paths = FORCED.get(kind, ())
    if kind in _IMMUTABLE and (old.get("immutable") is True or new.get("immutable") is True):
        paths += ("immutable", *_IMMUTABLE[kind])
    return tuple(path for path in paths if _at(old, path) != _at(new, path))


def _at(inputs: dict[str, Any], path: str) -> Any:
    found: Any = inputs
    for member in path.split("."):
        found = _plain(found.get(member)) if isinstance(found, dict) else None
    return found or None  # the provider does not distinguish an empty value from none


def _plain(value: Any) -> Any:
    if isinstance(value, dict) and _SIGNATURE in value and "plaintext" in value:
        return json.loads(value["plaintext"])
    return value
