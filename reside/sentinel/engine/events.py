"""Turns the engine's event log (pulumi's apitype.EngineEvent, one JSON object an event) into changes and complaints.

Pure. Only Kubernetes objects are reported, not the stack and the provider. Of properties, only the paths are read, and
the resource version; never other values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from reside.model.previews import ChangeAction, ObjectChange

_ACTIONS: Final[dict[str, ChangeAction]] = {
    "same": "same",
    "create": "create",
    "update": "update",
    "delete": "delete",
    "replace": "replace",
    "create-replacement": "replace",
    "delete-replaced": "replace",
}
_WHOLE: Final = ("update", "replace")
"""Changes of an object that exists before and after."""
_REFRESH: Final = "refresh"
_DONE: Final = "resOutputsEvent"
_WRITES: Final = ("create", "update", "replace", "create-replacement")
_STEPS: Final = ("resourcePreEvent", "resOutputsEvent", "resOpFailedEvent")
"""Events about a resource: before a step, after it, and after its failure."""
_INTERNAL = ("__fieldManager", "__initialApiVersion")


@dataclass(frozen=True)
class Complaint:
    """An error that the engine reported.

    Attributes:
        object: `Kind/name` of the object that the error is about, if any.
        message: the text of the error.
    """

    object: str | None
    message: str


@dataclass
class EventReader:
    """A collector of the events of one command."""

    complaints: list[Complaint] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    """Resource versions of the objects that were created or updated, by `Kind/name`."""
    stepped: bool = False
    """Whether the command has begun a step other than a refresh. It refreshes everything before that, or fails."""
    _changes: dict[str, ObjectChange] = field(default_factory=dict)

    @property
    def changes(self) -> tuple[ObjectChange, ...]:
        """What happened to each object, in the order of the engine's first event about it."""
        return tuple(self._changes.values())

    def read(self, event: dict[str, Any]) -> None:
        """Process one event."""
        for kind in _STEPS:
            if kind in event:
                self.stepped |= event[kind]["metadata"]["op"] != _REFRESH
                self._step(event[kind]["metadata"])
        if _DONE in event:
            self._done(event[_DONE]["metadata"])
        if "diagnosticEvent" in event:
            self._diagnostic(event["diagnosticEvent"])

    def _step(self, metadata: dict[str, Any]) -> None:
        name, action = object_of(metadata["urn"]), _ACTIONS.get(metadata["op"])
        if name is None or action is None or (action == "delete" and (metadata.get("old") or {}).get("retainOnDelete")):
            return  # an object that is retained stays as it is
        before = self._changes.get(name)
        if before is not None and before.action in _WHOLE:
            action = before.action  # the steps of a replacement are one change
        paths = _paths(metadata) if action in _WHOLE else ()
        self._changes[name] = ObjectChange(name, action, paths or (before.paths if before else ()))

    def _done(self, metadata: dict[str, Any]) -> None:
        name, outputs = object_of(metadata["urn"]), (metadata.get("new") or {}).get("outputs") or {}
        if name is not None and metadata["op"] in _WRITES:
            version = (outputs.get("metadata") or {}).get("resourceVersion")
            if isinstance(version, str):
                self.versions[name] = version

    def _diagnostic(self, diagnostic: dict[str, Any]) -> None:
        if diagnostic.get("severity") == "error":
            self.complaints.append(Complaint(object_of(diagnostic.get("urn", "")), diagnostic["message"]))


def object_of(urn: str) -> str | None:
    """Return `Kind/name` for the URN of a Kubernetes object, or None for any other resource."""
    parts = urn.split("::", 3)
    if len(parts) != 4:  # noqa: PLR2004 - urn:pulumi:STACK::PROJECT::TYPE::NAME
        return None
    kind = parts[2].rpartition("$")[2]
    return f"{kind.rpartition(':')[2]}/{parts[3]}" if kind.startswith("kubernetes:") else None


def _paths(metadata: dict[str, Any]) -> tuple[str, ...]:
    """Return the paths of the properties that differ."""
    found = metadata.get("detailedDiff") or dict.fromkeys(metadata.get("diffs") or ())
    return tuple(sorted(path for path in found if path not in _INTERNAL))
