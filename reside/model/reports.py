"""What the Sentinel reports of stacks and their objects, as values and as documents in Jazz. Pure.

Each type has `document`, its JSON form, and `parse`, which raises `InvalidInput` with the faulty member.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, get_args

from reside.model import documents
from reside.model.errors import InvalidInput
from reside.model.object_state import State, is_state

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reside.model.stacks import K8sObject

ObjectStatus = Literal["requested", "updated", "error"]


@dataclass(frozen=True)
class ObjectReport:
    """What the Sentinel reports of one object: whether it is applied, the live object in short, and the error.

    Attributes:
        live: the live object; it is stored apart, for those who may read its kind (`StackReport.live_by_kind`).
        pods: for the workload of a version, how many of its pods have not ended; None if that is not known.
        problem: what keeps pods of it from running (`reside.model.pod_problem`, `reside.model.object_trouble`); None if
            nothing does.
        drift: what others do to it: fields that they change again and again, or have added.
        state: whether Kubernetes has carried out what is desired; None if there is no live object.
        reason: why the state is not `current`; None if that is not known.
        reverted: what others have changed in it lately, and what was changed back.
    """

    status: ObjectStatus
    live: K8sObject | None = None
    error: str | None = None
    pods: int | None = None
    problem: str | None = None
    drift: tuple[str, ...] = ()
    state: State | None = None
    reason: str | None = None
    reverted: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the JSON form that is stored in Jazz, without the live object."""
        more: dict[str, Any] = {"pods": self.pods, "problem": self.problem, "drift": list(self.drift) or None}
        more |= {"state": self.state, "reason": self.reason, "reverted": list(self.reverted) or None}
        found = {"status": self.status, "error": self.error}
        return found | {member: value for member, value in more.items() if value is not None}

    @staticmethod
    def parse(data: Any, what: str = "object report") -> ObjectReport:
        """Return the report of a document; that of an earlier release contains the live object.

        Args:
            data: the document.
            what: what the document is, for the error.

        Raises:
            InvalidInput: a member is missing or malformed.
        """
        members = documents.document(data, what)
        status, live = members.get("status"), members.get("live")
        if not _is_status(status):
            raise InvalidInput(f"{what}: member status must be one of {', '.join(get_args(ObjectStatus))}")
        if live is not None and not isinstance(live, dict):
            raise InvalidInput(f"{what}: member live must be a Kubernetes object or null")
        pods = members.get("pods")
        if pods is not None and (not isinstance(pods, int) or isinstance(pods, bool) or pods < 0):
            raise InvalidInput(f"{what}: member pods must be a number or null")
        error, problem = (documents.text_or_none(members, member, what) for member in ("error", "problem"))
        drift, reverted = (
            documents.texts(members, member, what) if members.get(member) is not None else ()
            for member in ("drift", "reverted")
        )
        state, reason = members.get("state"), documents.text_or_none(members, "reason", what)
        known = state if is_state(state) else None  # a newer Sentinel may know more
        return ObjectReport(status, live, error, pods, problem, drift, known, reason, reverted)


@dataclass(frozen=True)
class ApplyProgress:
    """How far an operation on a stack is that lasts.

    Attributes:
        revision: the revision that is applied; None: the stack is removed.
        since: when the operation began, ms since the epoch.
        changed: number of its objects that have changed.
        objects: number of its objects; some may stay as they are.
    """

    revision: str | None
    since: int
    changed: int
    objects: int


@dataclass(frozen=True)
class StackReport:
    """What the Sentinel reports of one stack.

    Attributes:
        revision: the revision last applied.
        error: why the stack is not applied.
        objects: its objects by `Kind/name`.
        advice: a sentence for each violation of an advisory rule of the policy.
        progress: how far the operation on the stack is; None if none lasts. It decides nothing.
    """

    revision: str | None = None
    error: str | None = None
    objects: dict[str, ObjectReport] = field(default_factory=dict)
    advice: tuple[str, ...] = ()
    progress: ApplyProgress | None = None

    def document(self) -> dict[str, Any]:
        """Return the members of the report's map in Jazz, without the live objects."""
        members: dict[str, Any] = {"revision": self.revision, "error": self.error}
        members |= {"advice": list(self.advice)} if self.advice else {}
        members |= {"progress": asdict(self.progress)} if self.progress else {}
        return members | {key: report.document() for key, report in self.objects.items()}

    def live_by_kind(self) -> dict[str, dict[str, K8sObject]]:
        """Return the live objects by kind and `Kind/name`: the maps that those may read who may read the kind."""
        found: dict[str, dict[str, K8sObject]] = {}
        for key, report in self.objects.items():
            if report.live is not None:
                found.setdefault(key.partition("/")[0], {})[key] = report.live
        return found

    @staticmethod
    def parse(data: Mapping[str, Any], live: Mapping[str, Any] | None = None) -> StackReport:
        """Return the report that the members of a map represent; a map without members is an empty report.

        `progress` is for people, and not read.

        Args:
            data: the members of the report's map.
            live: the members of the maps of live objects that the reader may read.

        Raises:
            InvalidInput: a member is malformed.
        """
        what, seen = "stack report", live or {}
        return StackReport(
            documents.text_or_none(data, "revision", what),
            documents.text_or_none(data, "error", what) or None,
            {
                key: ObjectReport.parse(_with_live(value, seen.get(key)), f"{what}: member {key}")
                for key, value in data.items()
                if "/" in key
            },
            documents.texts(data, "advice", what) if "advice" in data else (),
        )


def _with_live(report: Any, live: Any) -> Any:
    return report if live is None or not isinstance(report, dict) else report | {"live": live}


def _is_status(value: Any) -> TypeGuard[ObjectStatus]:
    return value in get_args(ObjectStatus)
