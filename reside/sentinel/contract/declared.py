"""Who may say what: from what stands in Jazz to a desired stack that may be acted on. Pure.

Several accounts may write ``desired``, so an entry is not what was written last but what was written last by who may:
a stack belongs to the account that declared it first, and nobody else's write to its entry counts. The objects must be
written by that same account, which needs ``<kind>:manage:all`` for the kind of each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reside.model.constants import MADE_AT_TOLERANCE_MS
from reside.model.errors import Conflict, InvalidInput, NotAllowed
from reside.model.kinds import BY_KIND
from reside.model.stacks import DesiredStack, object_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from reside.jazz import Edit

_STACK_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_OBJECT_NAME: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9.:_]{0,252}")
"""What may stand as one segment of a request's path; the API server knows better what a name of a kind may be."""
_TEXTS: Final = {"metadata": ("labels", "annotations"), "Secret": ("data", "stringData")}


@dataclass(frozen=True)
class Rights:
    """Who may declare what.

    Attributes:
        granted: whether an account (first) has a permission of the Sentinel's contract (second) at present.
        holder: the stack that holds an object ``Kind/name``, None if none does.
        now_ms: the clock.
    """

    granted: Callable[[str, str], bool]
    holder: Callable[[str], str | None]
    now_ms: int

    def may_declare(self, account: str) -> bool:
        """Whether the account may declare anything at all."""
        return any(self.granted(account, kind.manage) for kind in BY_KIND.values())


def in_force(history: Sequence[Edit], owner: str | None, rights: Rights) -> Edit | None:
    """The edit of an entry that counts; None if there is none.

    Args:
        history: all edits of the entry, oldest first.
        owner: the account that the stack belongs to; None if that is not decided yet.
        rights: who may declare what.
    """
    timely = [edit for edit in history if edit.at <= rights.now_ms + MADE_AT_TOLERANCE_MS]
    if owner is None:
        owner = next((edit.by for edit in timely if rights.may_declare(edit.by)), None)
    return next((edit for edit in reversed(timely) if edit.by == owner), None)


def read_stack(name: str | None, entry: Edit, members: Mapping[str, Any], objects: Edit | None) -> DesiredStack:
    """The stack that a map declares, as far as its form and its authors go.

    Args:
        name: the name that it must have; None: any.
        entry: the edit that points to the map.
        members: the map's members.
        objects: the edit of its member ``objects``.

    Raises:
        InvalidInput: it is no stack.
        NotAllowed: it was written by another account than the entry.
    """
    stack = DesiredStack.parse(members)
    if not _STACK_NAME.fullmatch(stack.name) or stack.name != (name or stack.name):
        raise InvalidInput(
            f"stack {name or stack.name}: its map must have that name, a DNS label; it has {stack.name!r}"
        )
    for author in (objects.by if objects is not None else None, stack.owner):
        if author != entry.by:
            raise NotAllowed(f"stack {stack.name} was declared by {entry.by}, but its objects are of {author}")
    _check_objects(stack)
    return stack


def check_rights(stack: DesiredStack, rights: Rights) -> None:
    """Go on only if the stack's owner may declare all its objects.

    Raises:
        NotAllowed: a permission is missing; the message names all that are.
        Conflict: an object belongs to another stack.
    """
    missing = sorted(
        {
            kind.manage
            for manifest in stack.objects
            if not rights.granted(stack.owner, (kind := BY_KIND[manifest["kind"]]).manage)
        }
    )
    if missing:
        raise NotAllowed(f"stack {stack.name} needs {', '.join(missing)}, which {stack.owner} was not granted")
    for key in map(object_key, stack.objects):
        holder = rights.holder(key)
        if holder not in (None, stack.name):
            raise Conflict(f"{key} belongs to the stack {holder}: stack {stack.name} must name it otherwise")


def _check_objects(stack: DesiredStack) -> None:
    seen: set[str] = set()
    for manifest in stack.objects:
        key = _shaped_key(stack.name, manifest)
        version = BY_KIND[manifest["kind"]].api_version
        if manifest.get("apiVersion") != version:
            raise InvalidInput(
                f"stack {stack.name}: {key} must have apiVersion {version}, not {manifest.get('apiVersion')}"
            )
        if key in seen:
            raise InvalidInput(f"stack {stack.name}: {key} stands in it twice")
        seen.add(key)


def _shaped_key(stack: str, manifest: dict[str, Any]) -> str:
    """``Kind/name`` of a manifest whose parts are of the shapes that code behind this edge relies on."""
    key, metadata = object_key(manifest), manifest["metadata"]
    if not isinstance(metadata["name"], str) or not _OBJECT_NAME.fullmatch(metadata["name"]):
        raise InvalidInput(f"stack {stack}: {key} has a name that Kubernetes can't use")
    parts = [(metadata, part) for part in _TEXTS["metadata"]]
    parts += [(manifest, part) for part in _TEXTS.get(manifest["kind"], ())]
    for holder, part in parts:
        found = holder.get(part)
        if found is not None and not (isinstance(found, dict) and all(isinstance(v, str) for v in found.values())):
            raise InvalidInput(f"stack {stack}: {part} of {key} must be a map of texts")
    return key
