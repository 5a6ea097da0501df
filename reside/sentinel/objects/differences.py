"""What a repair has changed in an object, as people read it: fields, values before and after, managers before. Pure.

Values of Secrets and of environment variables are masked: a repair is told to everybody who may read events.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reside.common.masking import MASKED_VALUE
from reside.sentinel.objects import managed_fields
from reside.sentinel.objects.identity import metadata
from reside.sentinel.objects.managed_fields import Managed, shortened, shown
from reside.sentinel.objects.yields import yielded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from reside.model.stacks import K8sObject
    from reside.sentinel.objects.managed_fields import Path

UNKNOWN: Final = "an unknown manager"
"""The manager of a field that nobody owns, such as one that was removed: Kubernetes does not keep who did it."""
_ABSENT: Final = object()
_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "f:containers": ("name",),
    "f:initContainers": ("name",),
    "f:env": ("name",),
    "f:volumes": ("name",),
    "f:volumeMounts": ("mountPath",),
    "f:imagePullSecrets": ("name",),
    "f:topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
}
"""Lists whose elements have keys → the keys. Those of ports depend on the kind; other lists are one value."""
_LONGEST: Final = 60
"""Characters of a value that are shown."""
_MOST: Final = 8
"""Number of fields that are shown."""


@dataclass(frozen=True)
class Change:
    """A field that a repair has changed.

    Attributes:
        path: the field.
        before: its value before the repair, as it may be shown; None: it was absent.
        after: its value after the repair; None: it is absent.
        managers: who owned it before the repair.
    """

    path: Path
    before: str | None
    after: str | None
    managers: tuple[str, ...]

    def __str__(self) -> str:
        before, after = ("absent" if value is None else value for value in (self.before, self.after))
        return f"{shown(self.path)}: {before} → {after} ({', '.join(map(shortened, self.managers))})"

    def culprits(self) -> Iterator[Managed]:
        """Yield each manager with the field."""
        return (Managed(manager, self.path) for manager in self.managers)


def changes(before: K8sObject, after: K8sObject) -> list[Change]:
    """Return the fields that differ, without status and bookkeeping.

    Args:
        before: the live object before a repair, with the `managedFields` of others.
        after: the live object after it.
    """
    others = managed_fields.others(before)
    masks = before.get("kind") == "Secret"
    return [
        Change(path, _text(old, path, masks), _text(new, path, masks), _managers(others, path, old))
        for path, old, new in _differences(_content(before), _content(after), ())
    ]


def reverted(found: Iterable[Change], desired: K8sObject, taken: Sequence[Mapping[str, Any]]) -> list[Change]:
    """Return the changes that a repair has made, without those that others have made at the same time.

    Args:
        found: all changes between the live object before and after the repair.
        desired: the desired object.
        taken: the fields that were taken over from others, to be removed, one tree for each manager.
    """
    left = yielded(desired)
    return [
        change
        for change in found
        if not managed_fields.is_in(change.path, left)
        and (
            managed_fields.has(desired, change.path)
            or (change.after is None and any(managed_fields.covers(tree, change.path) for tree in taken))
        )
    ]


def summary(found: Iterable[Change]) -> str:
    """Return one line about changes."""
    texts = [str(change) for change in found]
    more = f"; and {len(texts) - _MOST} more" if len(texts) > _MOST else ""
    return "; ".join(texts[:_MOST]) + more


def _managers(others: list[managed_fields.Entry], path: Path, old: Any) -> tuple[str, ...]:
    found = managed_fields.owners(others, path) if old is not _ABSENT else []
    return tuple(found) or (UNKNOWN,)


def _content(obj: K8sObject) -> dict[str, Any]:
    meta = {part: metadata(obj)[part] for part in ("labels", "annotations") if metadata(obj).get(part)}
    rest = {name: value for name, value in obj.items() if name not in ("apiVersion", "kind", "metadata", "status")}
    return rest | ({"metadata": meta} if meta else {})


def _differences(old: Any, new: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    if old == new:
        return
    before, after = ({} if value is _ABSENT else value for value in (old, new))
    if isinstance(before, dict) and isinstance(after, dict) and (before or after):
        pairs = {f"f:{name}": (before.get(name, _ABSENT), after.get(name, _ABSENT)) for name in {**before, **after}}
    elif (keys := _keys_of(path, old, new)) is not None:
        first, second = _by_keys(old, keys), _by_keys(new, keys)
        pairs = {key: (first.get(key, _ABSENT), second.get(key, _ABSENT)) for key in {**first, **second}}
    else:
        yield path, old, new
        return
    for segment, (one, other) in pairs.items():
        yield from _differences(one, other, (*path, segment))


def _keys_of(path: Path, *values: Any) -> tuple[str, ...] | None:
    """Return the keys of the elements of a list; None if it is no list whose elements have keys."""
    elements = [each for value in values for each in (value if isinstance(value, list) else ())]
    if not path or not all(isinstance(value, list) or value is _ABSENT for value in values):
        return None
    is_of_pod = any(isinstance(each, dict) and "containerPort" in each for each in elements)
    ports = ("containerPort", "protocol") if is_of_pod else ("port", "protocol")
    keys = ports if path[-1] == "f:ports" else _KEYS.get(path[-1])
    return keys if keys and all(isinstance(each, dict) for each in elements) else None


def _by_keys(value: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    elements = value if isinstance(value, list) else ()
    return {
        "k:" + json.dumps({key: each[key] for key in keys if key in each}, separators=(",", ":")): each
        for each in elements
    }


def _text(value: Any, path: Path, masks: bool) -> str | None:
    """Return a value as it may be shown."""
    if value is _ABSENT:
        return None
    if masks or "f:env" in path or "f:kubectl.kubernetes.io/last-applied-configuration" in path:
        return MASKED_VALUE
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
