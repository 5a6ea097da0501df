"""Desired stacks, their previews and their reports, as values and as documents in Jazz.

A desired stack is the set of Kubernetes objects of one replica. Its revision is the SHA-256 of its canonical JSON, so
equal stacks have equal revisions. A desired stack holds no secret values: a Secret holds, in the annotation
`reside.io/secret-references`, references to values that only Alpha and the Sentinel can read.

Each type has `document`, its JSON form, and `parse`, which raises `InvalidInput` with the faulty member. `parse`
ignores members that it does not know, so that a newer writer may add some.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeGuard, get_args

from reside.common import traceparent
from reside.model.errors import InvalidInput
from reside.model.kinds import BY_KIND

if TYPE_CHECKING:
    from collections.abc import Mapping

K8sObject = dict[str, Any]
ObjectStatus = Literal["requested", "updated", "error"]
ChangeAction = Literal["create", "update", "replace", "delete", "same"]

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
    objects: tuple[K8sObject, ...]
    traceparent: str | None = field(default=None, compare=False)
    """Context of the trace that declared it. It is not a part of the revision, and decides nothing."""

    @property
    def revision(self) -> str:
        """SHA-256 (hex) of the stack's canonical JSON; it does not depend on the order of the objects."""
        ordered = sorted(self.objects, key=object_key)
        return hashlib.sha256(canonical([self.name, self.owner, ordered]).encode()).hexdigest()

    def keys(self) -> tuple[str, ...]:
        """Return `Kind/name` of every object."""
        return tuple(object_key(o) for o in self.objects)

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
        name, owner = _text(data, "name", what), _text(data, "owner", what)
        objects = data.get(OBJECTS)
        if not isinstance(objects, list | tuple) or not all(isinstance(item, dict) for item in objects):
            raise InvalidInput(f"{what}: member {OBJECTS} must be a list of Kubernetes objects")
        for obj in objects:
            if not isinstance(obj.get("metadata"), dict) or not isinstance(obj.get("kind"), str):
                raise InvalidInput(f"{what}: member {OBJECTS} contains an object that has no metadata or no kind")
            object_key(obj)
        return DesiredStack(name, owner, tuple(objects), traceparent.parse(data.get(traceparent.TRACEPARENT)))


@dataclass(frozen=True)
class ObjectReport:
    """What the Sentinel reports of one object: whether it is applied, the live object in short, and the error.

    Attributes:
        pods: for the workload of a version, how many of its pods have not ended; None if that is not known.
        problem: what keeps pods of it from running (`reside.model.pod_problem`); None if nothing does.
    """

    status: ObjectStatus
    live: K8sObject | None = None
    error: str | None = None
    pods: int | None = None
    problem: str | None = None

    def document(self) -> dict[str, Any]:
        """Return the JSON form that is stored in Jazz."""
        more = {"pods": self.pods, "problem": self.problem}
        found = {"status": self.status, "live": self.live, "error": self.error}
        return found | {member: value for member, value in more.items() if value is not None}

    @staticmethod
    def parse(data: Any, what: str = "object report") -> ObjectReport:
        """Return the report of a document.

        Args:
            data: the document.
            what: what the document is, for the error.

        Raises:
            InvalidInput: a member is missing or malformed.
        """
        members = _document(data, what)
        status, live = members.get("status"), members.get("live")
        if not _is_status(status):
            raise InvalidInput(f"{what}: member status must be one of {', '.join(get_args(ObjectStatus))}")
        if live is not None and not isinstance(live, dict):
            raise InvalidInput(f"{what}: member live must be a Kubernetes object or null")
        pods = members.get("pods")
        if pods is not None and (not isinstance(pods, int) or isinstance(pods, bool) or pods < 0):
            raise InvalidInput(f"{what}: member pods must be a number or null")
        error, problem = (_text_or_none(members, member, what) for member in ("error", "problem"))
        return ObjectReport(status, live, error, pods, problem)


@dataclass(frozen=True)
class ObjectChange:
    """What an apply would do, or did, to one object.

    `replace` deletes it and creates it anew. `paths` are the changed members of an update or a replacement.
    """

    object: str
    action: ChangeAction
    paths: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the JSON form that is stored in Jazz."""
        return {"object": self.object, "action": self.action, "paths": list(self.paths)}

    @staticmethod
    def parse(data: Any, what: str = "object change") -> ObjectChange:
        """Return the change of a document.

        Args:
            data: the document.
            what: what the document is, for the error.

        Raises:
            InvalidInput: a member is missing or malformed.
        """
        members = _document(data, what)
        action = members.get("action")
        if not _is_action(action):
            raise InvalidInput(f"{what}: member action must be one of {', '.join(get_args(ChangeAction))}")
        return ObjectChange(_text(members, "object", what), action, _texts(members, "paths", what))


@dataclass(frozen=True)
class StackPreview:
    """What applying a candidate would do: object changes (secret values masked) and policy violations."""

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
        """Return the JSON form that is stored in Jazz."""
        return {
            "stack": self.stack,
            "revision": self.revision,
            "changes": [change.document() for change in self.changes],
            "violations": list(self.violations),
            "error": self.error,
        }

    @staticmethod
    def parse(data: Any) -> StackPreview:
        """Return the preview of a document.

        Raises:
            InvalidInput: a member is missing or malformed.
        """
        what = "preview"
        members = _document(data, what)
        changes = members.get("changes")
        if not isinstance(changes, list):
            raise InvalidInput(f"{what}: member changes must be a list")
        return StackPreview(
            _text(members, "stack", what),
            _text(members, "revision", what),
            tuple(ObjectChange.parse(change, f"{what}: member changes") for change in changes),
            _texts(members, "violations", what),
            _text_or_none(members, "error", what),
        )


@dataclass(frozen=True)
class StackReport:
    """What the Sentinel reports of one stack: the revision last applied, the error, and its objects by `Kind/name`."""

    revision: str | None = None
    error: str | None = None
    objects: dict[str, ObjectReport] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the members of the report's map in Jazz."""
        objects = {key: report.document() for key, report in self.objects.items()}
        return {"revision": self.revision, "error": self.error, **objects}

    @staticmethod
    def parse(data: Mapping[str, Any]) -> StackReport:
        """Return the report that the members of a map represent; a map without members is an empty report.

        Raises:
            InvalidInput: a member is malformed.
        """
        what = "stack report"
        return StackReport(
            _text_or_none(data, "revision", what),
            _text_or_none(data, "error", what) or None,
            {key: ObjectReport.parse(value, f"{what}: member {key}") for key, value in data.items() if "/" in key},
        )


def _document(data: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise InvalidInput(f"{what}: it must be a JSON object")
    return data


def _text(data: Mapping[str, Any], member: str, what: str) -> str:
    value = data.get(member)
    if not isinstance(value, str):
        raise InvalidInput(f"{what}: member {member} must be a string")
    return value


def _text_or_none(data: Mapping[str, Any], member: str, what: str) -> str | None:
    return None if data.get(member) is None else _text(data, member, what)


def _texts(data: Mapping[str, Any], member: str, what: str) -> tuple[str, ...]:
    values = data.get(member)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InvalidInput(f"{what}: member {member} must be a list of strings")
    return tuple(values)


def _is_status(value: Any) -> TypeGuard[ObjectStatus]:
    return value in get_args(ObjectStatus)


def _is_action(value: Any) -> TypeGuard[ChangeAction]:
    return value in get_args(ChangeAction)
