"""Read and check desired stacks: which edit is effective, and what its author may declare. Pure.

Several accounts may write to `desired`, so the last edit of an entry is not always the effective one. A stack belongs
to the account that declared it first, and edits of other accounts are ignored. The objects must be written by the same
account, which needs `<kind>:manage:all` for the kind of each object.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reside.model.constants import MADE_AT_TOLERANCE_MS, TEARDOWN_MARKER
from reside.model.errors import Conflict, InvalidInput, NotAllowed
from reside.model.kinds import BY_KIND
from reside.model.stacks import DesiredStack, object_key
from reside.sentinel.contract.limits import check_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from reside.jazz import Edit

_STACK_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_OBJECT_NAME: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9.:_]{0,252}")
"""A safe segment of a request's path. The API server checks the rules for names of each kind."""
_TEXTS: Final = {"metadata": ("labels", "annotations"), "Secret": ("data", "stringData")}


@dataclass(frozen=True)
class Rights:
    """What decides which accounts may declare which objects.

    Attributes:
        granted: returns whether an account (first argument) has a permission of the Sentinel's contract (second).
        holder: returns the stack that contains an object `Kind/name`; None if none does.
        now_ms: the current time, ms since the epoch.
    """

    granted: Callable[[str, str], bool]
    holder: Callable[[str], str | None]
    now_ms: int

    def may_declare(self, account: str) -> bool:
        """Return whether the account may declare objects of any kind."""
        return any(self.granted(account, kind.manage) for kind in BY_KIND.values())


def is_stack_name(text: str) -> bool:
    """Return whether a stack may have this name, which is also part of paths on the volume."""
    return _STACK_NAME.fullmatch(text) is not None


def effective_edit(history: Sequence[Edit], owner: str | None, rights: Rights) -> Edit | None:
    """Return the effective edit of an entry; None if there is none.

    Args:
        history: all edits of the entry, oldest first.
        owner: the account that owns the stack; None if it has no owner yet.
        rights: who may declare what.
    """
    timely = [edit for edit in history if edit.at <= rights.now_ms + MADE_AT_TOLERANCE_MS]
    if owner is None:
        owner = next((edit.by for edit in timely if rights.may_declare(edit.by)), None)
    return next((edit for edit in reversed(timely) if edit.by == owner), None)


def read_stack(name: str | None, entry: Edit, members: Mapping[str, Any], objects: Edit | None) -> DesiredStack:
    """Return the stack in a map; check its form and its authors, but not permissions.

    Args:
        name: the required name; None: any.
        entry: the edit that points to the map.
        members: the map's members.
        objects: the edit of its member `objects`.

    Raises:
        InvalidInput: it is not a stack.
        NotAllowed: another account than the author of the entry wrote it.
    """
    check_limits(members)
    stack = DesiredStack.parse(members)
    if not is_stack_name(stack.name) or stack.name != (name or stack.name):
        raise InvalidInput(
            f"stack {name or stack.name}: its map contains the name {stack.name!r}; both must be the same DNS label"
        )
    for author in (objects.by if objects is not None else None, stack.owner):
        if author != entry.by:
            raise NotAllowed(f"stack {stack.name} was declared by {entry.by}, but its objects were written by {author}")
    _check_objects(stack)
    return stack


def check_rights(stack: DesiredStack, rights: Rights) -> None:
    """Check that the stack's owner may declare all its objects.

    Raises:
        NotAllowed: permissions are missing; the message names them.
        Conflict: an object belongs to another stack.
    """
    missing = sorted(
        {kind.manage for obj in stack.objects if not rights.granted(stack.owner, (kind := BY_KIND[obj["kind"]]).manage)}
    )
    if missing:
        raise NotAllowed(f"stack {stack.name} needs {', '.join(missing)}, which {stack.owner} was not granted")
    for key in map(object_key, stack.objects):
        holder = rights.holder(key)
        if holder not in (None, stack.name):
            raise Conflict(
                f"{key} belongs to the stack {holder}; use another name in stack {stack.name}, or, if both stacks are "
                "yours, remove it from the other one, and it moves"
            )


def _check_objects(stack: DesiredStack) -> None:
    seen: set[str] = set()
    for obj in stack.objects:
        key = _shaped_key(stack.name, obj)
        version = BY_KIND[obj["kind"]].api_version
        if obj.get("apiVersion") != version:
            raise InvalidInput(f"stack {stack.name}: {key} must have apiVersion {version}, not {obj.get('apiVersion')}")
        if key == TEARDOWN_MARKER:
            raise InvalidInput(f"stack {stack.name}: {key} can't be declared, since it stops every apply: remove it")
        if key in seen:
            raise InvalidInput(f"stack {stack.name}: {key} is in the stack twice; remove one of them")
        seen.add(key)


def _shaped_key(stack: str, obj: dict[str, Any]) -> str:
    """Return `Kind/name` of an object; check the types of the parts that later code relies on."""
    key, metadata = object_key(obj), obj["metadata"]
    if not isinstance(metadata["name"], str) or not _OBJECT_NAME.fullmatch(metadata["name"]):
        raise InvalidInput(f"stack {stack}: {key} has an invalid name for a Kubernetes object")
    parts = [(metadata, part) for part in _TEXTS["metadata"]]
    parts += [(obj, part) for part in _TEXTS.get(obj["kind"], ())]
    for holder, part in parts:
        found = holder.get(part)
        if found is not None and not (isinstance(found, dict) and all(isinstance(v, str) for v in found.values())):
            raise InvalidInput(f"stack {stack}: {part} of {key} must be a map of strings")
    return key
