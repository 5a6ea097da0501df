"""Desired stacks and what the Sentinel reports of them.

A desired stack is all that one replica wants of Kubernetes. Its ``revision`` is the SHA-256 of its canonical JSON, so
that equal wishes bear equal revisions wherever they were made. Secret values never stand in it: a Secret holds, in the
annotation ``reside.io/secret-references``, references to values that only Alpha and the Sentinel can read.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Literal

from reside.model.errors import InvalidInput
from reside.model.kinds import BY_KIND

K8sObject = dict[str, Any]
ObjectStatus = Literal["requested", "updated", "error"]
ChangeAction = Literal["create", "update", "delete", "same"]


def object_key(manifest: K8sObject) -> str:
    """``Kind/name`` of a Kubernetes object: its key inside a stack.

    Raises:
        InvalidInput: kind or name is missing, or the kind is none that a stack may hold.
    """
    kind, name = manifest.get("kind"), (manifest.get("metadata") or {}).get("name")
    if kind not in BY_KIND or not name:
        raise InvalidInput(
            f"object {kind}/{name} can't stand in a stack: kinds are {', '.join(BY_KIND)}, and a name is needed"
        )
    return f"{kind}/{name}"


def canonical(value: Any) -> str:
    """Canonical JSON: sorted keys, no white space."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True)
class DesiredStack:
    """What one owner wants of Kubernetes."""

    name: str
    owner: str
    objects: tuple[K8sObject, ...]

    @property
    def revision(self) -> str:
        """SHA-256 (hex) of the stack's canonical JSON; the order of the objects does not matter."""
        ordered = sorted(self.objects, key=object_key)
        return hashlib.sha256(canonical([self.name, self.owner, ordered]).encode()).hexdigest()

    def keys(self) -> tuple[str, ...]:
        """``Kind/name`` of every object."""
        return tuple(object_key(o) for o in self.objects)


@dataclass(frozen=True)
class ObjectReport:
    """What the Sentinel knows of one object: whether it was accepted, and the live object in short."""

    status: ObjectStatus
    live: K8sObject | None = None
    error: str | None = None

    def document(self) -> dict[str, Any]:
        """JSON form as stored in Jazz."""
        return {"status": self.status, "live": self.live, "error": self.error}

    @staticmethod
    def parse(data: Any) -> ObjectReport | None:
        """From its JSON form, or None if it is none."""
        if not isinstance(data, dict) or data.get("status") not in ("requested", "updated", "error"):
            return None
        return ObjectReport(data["status"], data.get("live"), data.get("error"))


@dataclass(frozen=True)
class ObjectChange:
    """What an apply would do, or did, to one object; ``paths`` are the changed members of an update."""

    object: str
    action: ChangeAction
    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class StackPreview:
    """What applying a candidate stack would do: object changes (secret values masked) and broken rules."""

    stack: str
    revision: str
    changes: tuple[ObjectChange, ...] = ()
    violations: tuple[str, ...] = ()
    error: str | None = None

    @property
    def applicable(self) -> bool:
        """Whether the stack may be applied."""
        return not self.violations and self.error is None

    def document(self) -> dict[str, Any]:
        """JSON form as stored in Jazz."""
        return {
            "stack": self.stack,
            "revision": self.revision,
            "changes": [{"object": c.object, "action": c.action, "paths": list(c.paths)} for c in self.changes],
            "violations": list(self.violations),
            "error": self.error,
        }

    @staticmethod
    def parse(data: dict[str, Any]) -> StackPreview:
        """From its JSON form."""
        changes = tuple(ObjectChange(c["object"], c["action"], tuple(c["paths"])) for c in data["changes"])
        return StackPreview(data["stack"], data["revision"], changes, tuple(data["violations"]), data["error"])


@dataclass(frozen=True)
class StackReport:
    """What the Sentinel reports of one stack: the revision last applied, and its objects by ``Kind/name``."""

    revision: str | None = None
    error: str | None = None
    objects: dict[str, ObjectReport] = field(default_factory=dict)
