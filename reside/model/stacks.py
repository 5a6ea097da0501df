"""Desired stacks, as values and as documents in Jazz.

A desired stack is the set of Kubernetes objects of one replica. Its revision is the SHA-256 of its canonical JSON, so
equal stacks have equal revisions. A desired stack holds no secret values: a Secret holds, in the annotation
`reside.io/secret-references`, references to values that only Alpha and the Sentinel can read.

`document` is the JSON form of a stack; `parse` raises `InvalidInput` with the faulty member.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from reside.common import traceparent
from reside.model import documents
from reside.model.errors import InvalidInput
from reside.model.kinds import BY_KIND

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

K8sObject = dict[str, Any]

OBJECTS: Final = "objects"
"""Member of a desired stack's map: the objects. The account that wrote it is the author of the stack."""


def object_key(obj: K8sObject) -> str:
    """Return `Kind/name` of a Kubernetes object, its key inside a stack.

    Raises:
        InvalidInput: kind or name is missing, or a stack can't contain this kind.
    """
    kind, metadata = obj.get("kind"), obj.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(kind, str) or kind not in BY_KIND or not name:
        raise InvalidInput(
            f"object {kind}/{name} can't be in a stack: give it a name and one of the kinds {', '.join(BY_KIND)}"
        )
    return f"{kind}/{name}"


def canonical(value: Any) -> str:
    """Return canonical JSON: sorted keys, no white space."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True)
class DesiredStack:
    """The Kubernetes objects that an account declares as one unit."""

    name: str
    owner: str
    objects: Sequence[K8sObject]
    traceparent: str | None = field(default=None, compare=False)
    """Context of the trace that declared it. It is not a part of the revision, and decides nothing."""

    @cached_property
    def revision(self) -> str:
        """SHA-256 (hex) of the stack's canonical JSON; it does not depend on the order of the objects."""
        ordered = sorted(self.objects, key=object_key)
        return hashlib.sha256(canonical([self.name, self.owner, ordered]).encode()).hexdigest()

    def keys(self) -> tuple[str, ...]:
        """Return `Kind/name` of every object."""
        return tuple(object_key(o) for o in self.objects)

    def holding(self, objects: Sequence[K8sObject]) -> DesiredStack:
        """Return this stack with equal objects in another form; its revision is not computed again."""
        found = replace(self, objects=objects)
        vars(found).update({name: value for name, value in vars(self).items() if name == "revision"})
        return found

    def document(self) -> dict[str, Any]:
        """Return the members of the stack's map in Jazz."""
        members = {"name": self.name, "owner": self.owner, "revision": self.revision, OBJECTS: list(self.objects)}
        return members if self.traceparent is None else {**members, traceparent.TRACEPARENT: self.traceparent}

    @staticmethod
    def parse(data: Mapping[str, Any]) -> DesiredStack:
        """Return the stack that the members of a map represent. `revision` is not read; it is computed from the others.

        Raises:
            InvalidInput: a member is missing or malformed, or an object has no kind and name that a stack can contain.
        """
        what = f"stack {data.get('name')!r}"
        name, owner = documents.text(data, "name", what), documents.text(data, "owner", what)
        objects = data.get(OBJECTS)
        if not isinstance(objects, list | tuple) or not all(isinstance(item, dict) for item in objects):
            raise InvalidInput(f"{what}: member {OBJECTS} must be a list of Kubernetes objects")
        for obj in objects:
            if not isinstance(obj.get("metadata"), dict) or not isinstance(obj.get("kind"), str):
                raise InvalidInput(f"{what}: member {OBJECTS} contains an object that has no metadata or no kind")
            object_key(obj)
        return DesiredStack(name, owner, tuple(objects), traceparent.parse(data.get(traceparent.TRACEPARENT)))
