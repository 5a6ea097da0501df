"""Reads the engine's event log (pulumi's apitype.EngineEvent, one JSON object an event) into changes and complaints.

Pure: events go in one by one, what they say comes out as data. Resources other than Kubernetes objects (the stack, the
provider) are left out; values of properties are never looked at, only their paths.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from reside.model.stacks import ChangeAction, ObjectChange
from reside.sentinel.engine.port import StackEvent

_ACTIONS: Final[dict[str, ChangeAction]] = {
    "same": "same",
    "create": "create",
    "update": "update",
    "delete": "delete",
    "replace": "update",
    "create-replacement": "update",
    "delete-replaced": "update",
}
_INTERNAL = ("__fieldManager", "__initialApiVersion")


@dataclass(frozen=True)
class Complaint:
    """An error that the engine reported, with the object that it is about, if any."""

    object: str | None
    message: str


@dataclass
class EventReader:
    """Collects the events of one operation."""

    complaints: list[Complaint] = field(default_factory=list)
    _changes: dict[str, ObjectChange] = field(default_factory=dict)

    @property
    def changes(self) -> tuple[ObjectChange, ...]:
        """What happened to each object so far, in the order in which the engine came to them."""
        return tuple(self._changes.values())

    def read(self, event: dict[str, Any]) -> StackEvent | None:
        """Take one event in; returns the progress that it means, if any."""
        if "resourcePreEvent" in event:
            return self._step(event["resourcePreEvent"]["metadata"], "started")
        if "resOutputsEvent" in event:
            return self._step(event["resOutputsEvent"]["metadata"], "done")
        if "resOpFailedEvent" in event:
            return self._step(event["resOpFailedEvent"]["metadata"], "failed")
        if "diagnosticEvent" in event:
            self._diagnostic(event["diagnosticEvent"])
        return None

    def _step(self, metadata: dict[str, Any], phase: Any) -> StackEvent | None:
        name, action = object_of(metadata["urn"]), _ACTIONS.get(metadata["op"])
        if name is None or action is None:
            return None
        before = self._changes.get(name)
        if before is not None and before.action == "update" and action != "update":
            action = "update"  # the steps of a replacement: one change
        paths = _paths(metadata) if action == "update" else ()
        self._changes[name] = ObjectChange(name, action, paths or (before.paths if before else ()))
        return StackEvent(name, action, phase)

    def _diagnostic(self, diagnostic: dict[str, Any]) -> None:
        if diagnostic.get("severity") == "error":
            self.complaints.append(Complaint(object_of(diagnostic.get("urn", "")), diagnostic["message"]))


def object_of(urn: str) -> str | None:
    """``Kind/name`` of a Kubernetes resource's URN, or None for any other resource."""
    parts = urn.split("::", 3)
    if len(parts) != 4:  # noqa: PLR2004 - urn:pulumi:STACK::PROJECT::TYPE::NAME
        return None
    kind = parts[2].rpartition("$")[2]
    return f"{kind.rpartition(':')[2]}/{parts[3]}" if kind.startswith("kubernetes:") else None


def _paths(metadata: dict[str, Any]) -> tuple[str, ...]:
    """Paths of the properties that differ."""
    found = metadata.get("detailedDiff") or dict.fromkeys(metadata.get("diffs") or ())
    return tuple(sorted(path for path in found if path not in _INTERNAL))
