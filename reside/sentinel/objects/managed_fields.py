"""Who manages which fields of a live object, as its `managedFields` say. Pure.

A field is named by its *path*, the segments of FieldsV1: `f:<member>` for a member, `k:<JSON of its keys>` for an
element of a list that has keys, and `v:<JSON>` for an element of a set. A list without keys is one field.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reside.model.constants import FIELD_MANAGER
from reside.sentinel.objects.identity import metadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from reside.model.stacks import K8sObject

Path = tuple[str, ...]
Entry = dict[str, Any]
"""An entry of `managedFields`."""

_MANUAL: Final = "kubectl"
"""Prefix of the field managers of people: kubectl, kubectl-edit, kubectl-patch, kubectl-client-side-apply, …"""
_SYSTEM: Final = frozenset(
    {"cloud-controller-manager", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"}
)
"""Field managers of Kubernetes itself, which writes fields of many objects, such as the volume of a claim."""
_LONGEST: Final = 120
"""Characters of a path or of the name of a manager that are shown."""


class Managed(NamedTuple):
    """A field, and a manager that owns it."""

    manager: str
    path: Path

    def __str__(self) -> str:
        return f"{shown(self.path)} by {shortened(self.manager)}"


def entries(live: K8sObject) -> list[Entry]:
    """Return the `managedFields` of a live object."""
    return list(metadata(live).get("managedFields") or ())


def others(live: K8sObject) -> list[Entry]:
    """Return the entries of other managers than us, without those that write only a status."""
    return [entry for entry in entries(live) if entry.get("manager") != FIELD_MANAGER and not _is_of_status(entry)]


def is_manual(entry: Entry) -> bool:
    """Return whether an entry is a person's write, other than to a status."""
    return str(entry.get("manager", "")).startswith(_MANUAL) and not _is_of_status(entry)


def is_foreign(entry: Entry) -> bool:
    """Return whether an entry is a write of another program that is no part of Kubernetes, other than to a status."""
    name = str(entry.get("manager", ""))
    is_known = name == FIELD_MANAGER or name in _SYSTEM or name.startswith(_MANUAL)
    return not is_known and not _is_of_status(entry)


def is_of_apply(entry: Entry) -> bool:
    """Return whether an entry has the fields that our server-side apply owns."""
    return entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply" and not entry.get("subresource")


def manager_of(entry: Entry) -> str:
    """Return the name of an entry's manager."""
    return str(entry.get("manager") or "an unknown manager")


def fields_of(entry: Entry) -> dict[str, Any]:
    """Return the fields of an entry, as a tree."""
    found = entry.get("fieldsV1")
    return found if isinstance(found, dict) else {}


def owners(found: Iterable[Entry], path: Path) -> list[str]:
    """Return the managers among these entries that own a field, or a field in or around it."""
    return list(dict.fromkeys(manager_of(entry) for entry in found if covers(fields_of(entry), path)))


def leaves(fields: Mapping[str, Any], base: Path = ()) -> Iterator[Path]:
    """Yield the path of each field in a tree that has no fields in it."""
    for segment, subtree in fields.items():
        if segment == ".":
            continue
        if isinstance(subtree, dict) and any(inner != "." for inner in subtree):
            yield from leaves(subtree, (*base, segment))
        else:
            yield (*base, segment)


def is_in(path: Path, chosen: Iterable[Path]) -> bool:
    """Return whether a path is one of the chosen ones, or in one of them."""
    return any(path[: len(other)] == other for other in chosen)


def divided(fields: Mapping[str, Any], chosen: Iterable[Path]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Divide a tree into what is at the chosen paths and the rest.

    An object that contains fields of both belongs to both: a manager that no longer owns it would remove it.
    """
    inside: dict[str, Any] = {}
    outside: dict[str, Any] = {}
    for segment, subtree in fields.items():
        below = [path[1:] for path in chosen if path and path[0] == segment]
        if () in below:
            inside[segment] = subtree
        elif not below or not isinstance(subtree, dict):
            outside[segment] = subtree
        else:
            members = {name: value for name, value in subtree.items() if name != "."}
            found, rest = divided(members, below)
            own: dict[str, Any] = {".": {}} if "." in subtree else {}
            if found:
                inside[segment] = own | found
            if rest or not found:
                outside[segment] = own | rest
    return inside, outside


def union(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    """Return the union of two trees."""
    result = dict(left)
    for name, subtree in right.items():
        result[name] = union(result[name], subtree) if isinstance(result.get(name), dict) else subtree
    return result


def member(*names: str) -> Path:
    """Return the path of a member."""
    return tuple(f"f:{name}" for name in names)


_ABSENT: Final = object()


def value_at(obj: Any, path: Path, default: Any = None) -> Any:
    """Return the value of a field; `default` if the object does not have it."""
    for segment in path:
        obj = _child(obj, segment)
        if obj is _ABSENT:
            return default
    return obj


def has(obj: Any, path: Path) -> bool:
    """Return whether an object has a field."""
    return value_at(obj, path, _ABSENT) is not _ABSENT


def without(obj: Any, path: Path) -> Any:
    """Return an object without a member; only members are removed, no elements of lists."""
    if not isinstance(obj, dict) or not path or not has(obj, path):
        return obj
    name = path[0].removeprefix("f:")
    if len(path) == 1:
        return {key: value for key, value in obj.items() if key != name}
    return obj | {name: without(obj[name], path[1:])}


def shown(path: Path) -> str:
    """Return a path as people write it: `spec.template.spec.containers[name=main].image`."""
    text = "".join(map(_segment, path)).removeprefix(".")
    return shortened(text)


def shortened(text: str) -> str:
    """Return one printable line of limited length."""
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _segment(segment: str) -> str:
    kind, text = segment[:2], segment[2:]
    if kind == "f:":
        return f".{text}" if text.replace("_", "").replace("-", "").isalnum() else f'["{text}"]'
    if kind == "k:" and isinstance(keys := _parsed(text), dict):
        return f"[{','.join(f'{name}={value}' for name, value in keys.items())}]"
    return f"[{text}]"


def _child(obj: Any, segment: str) -> Any:
    kind, text = segment[:2], segment[2:]
    if kind == "f:":
        return obj.get(text, _ABSENT) if isinstance(obj, dict) else _ABSENT
    wanted = _parsed(text)
    for element in obj if isinstance(obj, list) else ():
        if kind == "v:" and element == wanted:
            return element
        if kind == "k:" and isinstance(element, dict) and isinstance(wanted, dict) and _matches(element, wanted):
            return element
    return _ABSENT


def _matches(element: dict[str, Any], keys: dict[str, Any]) -> bool:
    """Return whether an element of a list has these keys; a protocol that is not written is TCP."""
    return all(element.get(name, "TCP" if name == "protocol" else None) == value for name, value in keys.items())


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def covers(fields: Mapping[str, Any], path: Path) -> bool:
    """Return whether a tree has a field, or a field in or around it."""
    for segment in path:
        subtree = fields.get(segment)
        if not isinstance(subtree, dict):
            return False
        if not subtree:
            return True
        fields = subtree
    return True


def _is_of_status(entry: Entry) -> bool:
    return entry.get("subresource") == "status"
