"""What a preview shows of the objects that would change: values before and after, and live versions. Pure.

Invariant: no value of a Secret is shown. Values of Secrets are masked, and wherever a secret value of the stack occurs
in another object, too. What is shown has a limited size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from reside.common.masking import MASKED_VALUE, mask
from reside.model.applied import as_applied
from reside.model.previews import ObjectChange, ValueChange
from reside.model.stacks import canonical, object_key
from reside.sentinel.objects.live import public, shown_whole
from reside.sentinel.objects.masking import secret_values
from reside.sentinel.objects.paths import steps, value_at
from reside.sentinel.objects.versions import live_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from reside.model.stacks import K8sObject

LONGEST_VALUE: Final = 4096
"""Characters of canonical JSON of one value. Of a longer one, the beginning is shown as text."""
LONGEST_PREVIEW: Final = 32 * 1024
"""Characters of all values of one preview. What is beyond is not shown."""
_SECRET_PARTS: Final = ("data", "stringData")


def shown_changes(
    changes: Iterable[ObjectChange],
    desired: Sequence[K8sObject],
    live: Mapping[str, K8sObject | None],
    namespace: str,
) -> tuple[ObjectChange, ...]:
    """Return the changes of a preview with live versions and values.

    Args:
        changes: the changes that the engine has found.
        desired: the objects of the candidate, with the values of secret references.
        live: the live objects by `Kind/name`, as they were when the preview began.
        namespace: namespace of the cluster.
    """
    secrets = secret_values([*desired, *(found for found in live.values() if found is not None)])
    wanted = {object_key(obj): as_applied(obj, namespace) for obj in desired}
    rest, result = LONGEST_PREVIEW, []
    for change in changes:
        if change.action == "same":
            result.append(change)
            continue
        found = live.get(change.object)
        values = _values(change, found, wanted.get(change.object), lambda text: mask(text, secrets))
        size = sum(len(canonical(value.document())) for value in values)
        if size > rest:
            values = ()
        else:
            rest -= size
        result.append(ObjectChange(change.object, change.action, change.paths, live_version(found), values))
    return tuple(result)


def _values(
    change: ObjectChange, live: K8sObject | None, desired: K8sObject | None, hide: Callable[[str], str]
) -> tuple[ValueChange, ...]:
    if change.action in ("create", "delete") or not change.paths:
        before, after = (None if obj is None else shown_whole(obj) for obj in (live, desired))
        pairs: list[tuple[str, Any, Any]] = [("", before, after)]
    else:
        is_secret = change.object.startswith("Secret/")
        pairs = [(path, *_pair(path, live, desired, is_secret=is_secret)) for path in change.paths]
    return tuple(ValueChange(path, _short(before, hide), _short(after, hide)) for path, before, after in pairs)


def _pair(path: str, live: K8sObject | None, desired: K8sObject | None, *, is_secret: bool) -> tuple[Any, Any]:
    """Return the values of both objects at a path. A secret value is masked, whatever the path leads to in it."""
    if is_secret and steps(path)[0] in _SECRET_PARTS and len(steps(path)) > 1:
        found = [value_at(obj, path) for obj in (live, desired)]
        before, after = (None if value is None else MASKED_VALUE for value in found)
    else:
        before, after = (None if obj is None else value_at(public(obj), path) for obj in (live, desired))
    return before, after


def _short(value: Any, hide: Callable[[str], str]) -> Any:
    """Return a value with secrets masked; if it is long, the beginning of its JSON as text."""
    value = _hidden(value, hide)
    text = canonical(value)
    return value if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}… ({len(text)} characters)"


def _hidden(value: Any, hide: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, dict):
        return {hide(name): _hidden(item, hide) for name, item in value.items()}
    return [_hidden(item, hide) for item in value] if isinstance(value, list | tuple) else value
