"""What an apply of a desired stack would change, as values and as documents in Jazz. Pure.

Each type has `document`, its JSON form, and `parse`, which raises `InvalidInput` with the faulty member.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, get_args

from reside.model import documents
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

ChangeAction = Literal["create", "update", "replace", "delete", "same"]


@dataclass(frozen=True)
class ValueChange:
    """What an apply would change at one path of an object: the live value, and the desired one. None: there is none.

    The path of a whole object, which is created or deleted, is empty. Values of a Secret are masked.
    """

    path: str
    before: Any = None
    after: Any = None

    def document(self) -> dict[str, Any]:
        """Return the JSON form that is stored in Jazz."""
        return {"path": self.path, "before": self.before, "after": self.after}

    @staticmethod
    def parse(data: Any, what: str = "value change") -> ValueChange:
        """Return the change of a document.

        Args:
            data: the document.
            what: what the document is, for the error.

        Raises:
            InvalidInput: a member is missing or malformed.
        """
        members = documents.document(data, what)
        return ValueChange(documents.text(members, "path", what), members.get("before"), members.get("after"))


@dataclass(frozen=True)
class ObjectChange:
    """What an apply would do, or did, to one object.

    Attributes:
        object: the object, as `Kind/name`.
        action: what is done; `replace` deletes and recreates it.
        paths: the changed members of an update or a replacement.
        live: of a preview: the live version of the object that was compared; None: there is no live object.
        values: of a preview: what changes; it may be missing for what is too large.
    """

    object: str
    action: ChangeAction
    paths: tuple[str, ...] = ()
    live: str | None = None
    values: tuple[ValueChange, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the JSON form that is stored in Jazz."""
        members = {"object": self.object, "action": self.action, "paths": list(self.paths)}
        more = {"live": self.live, "values": [value.document() for value in self.values]}
        return members | {member: value for member, value in more.items() if value}

    @staticmethod
    def parse(data: Any, what: str = "object change") -> ObjectChange:
        """Return the change of a document.

        Args:
            data: the document.
            what: what the document is, for the error.

        Raises:
            InvalidInput: a member is missing or malformed.
        """
        members = documents.document(data, what)
        action = members.get("action")
        if not _is_action(action):
            raise InvalidInput(f"{what}: member action must be one of {', '.join(get_args(ChangeAction))}")
        values = members.get("values", [])
        if not isinstance(values, list):
            raise InvalidInput(f"{what}: member values must be a list")
        return ObjectChange(
            documents.text(members, "object", what),
            action,
            documents.texts(members, "paths", what),
            documents.text_or_none(members, "live", what),
            tuple(ValueChange.parse(value, f"{what}: member values") for value in values),
        )


@dataclass(frozen=True)
class Advice:
    """A violation of an advisory rule: the name of the rule, the object `Kind/name`, what is wrong, why it matters."""

    rule: str
    object: str
    message: str
    reason: str

    def document(self) -> dict[str, Any]:
        """Return the JSON form that is stored in Jazz."""
        return {"rule": self.rule, "object": self.object, "message": self.message, "reason": self.reason}

    @staticmethod
    def parse(data: Any, what: str = "advice") -> Advice:
        """Return the advice of a document.

        Args:
            data: the document.
            what: what the document is, for the error.

        Raises:
            InvalidInput: a member is missing or malformed.
        """
        members = documents.document(data, what)
        return Advice(*(documents.text(members, member, what) for member in ("rule", "object", "message", "reason")))


@dataclass(frozen=True)
class StackPreview:
    """What applying a candidate would do: object changes (secret values masked), and violations of the policy.

    `violations` are those of mandatory rules, which refuse the stack; `advice` are those of advisory ones.
    """

    stack: str
    revision: str
    changes: tuple[ObjectChange, ...] = ()
    violations: tuple[str, ...] = ()
    error: str | None = None
    advice: tuple[Advice, ...] = ()

    @property
    def applicable(self) -> bool:
        """Whether the stack may be applied."""
        return not self.violations and self.error is None

    def with_values(self, values: Mapping[str, Any]) -> StackPreview:
        """Return the preview with these changed values, by `Kind/name`, each a list of documents.

        Raises:
            InvalidInput: a document is malformed.
        """
        changes = (change.document() | {"values": values.get(change.object, [])} for change in self.changes)
        return replace(self, changes=tuple(ObjectChange.parse(change) for change in changes))

    @property
    def live_versions(self) -> dict[str, str | None]:
        """The live version of each object that the stack would change; None: there is no such live object."""
        return {change.object: change.live for change in self.changes if change.action != "same"}

    def document(self) -> dict[str, Any]:
        """Return the JSON form that is stored in Jazz."""
        return {
            "stack": self.stack,
            "revision": self.revision,
            "changes": [change.document() for change in self.changes],
            "violations": list(self.violations),
            "error": self.error,
            "advice": [each.document() for each in self.advice],
        }

    @staticmethod
    def parse(data: Any) -> StackPreview:
        """Return the preview of a document.

        Raises:
            InvalidInput: a member is missing or malformed.
        """
        what = "preview"
        members = documents.document(data, what)
        changes, advice = members.get("changes"), members.get("advice", [])
        if not isinstance(changes, list):
            raise InvalidInput(f"{what}: member changes must be a list")
        if not isinstance(advice, list):
            raise InvalidInput(f"{what}: member advice must be a list")
        return StackPreview(
            documents.text(members, "stack", what),
            documents.text(members, "revision", what),
            tuple(ObjectChange.parse(change, f"{what}: member changes") for change in changes),
            documents.texts(members, "violations", what),
            documents.text_or_none(members, "error", what),
            tuple(Advice.parse(each, f"{what}: member advice") for each in advice),
        )


def _is_action(value: Any) -> TypeGuard[ChangeAction]:
    return value in get_args(ChangeAction)
