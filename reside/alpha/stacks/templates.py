"""Pod templates of Deployments: a version keeps its template until somebody asks for the new one. Pure.

A changed template restarts all pods of a Deployment. A newer Alpha may render templates otherwise, so it compares them
and reports what would change; an administrator names the digest of the new template to roll it out. The placement of a
replica is not kept: it changes only when an administrator changes a setting.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from reside.model.entities import TemplateChange
from reside.model.stacks import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reside.model.stacks import K8sObject

_PLACEMENT = "nodeSelector"


def with_kept_template(fresh: K8sObject, before: K8sObject, asked: str | None) -> K8sObject:
    """Return a Deployment with the pod template that it had before, unless the new one was asked for.

    Args:
        fresh: the Deployment as it is rendered now.
        before: the Deployment as it was declared last.
        asked: digest of the template that was asked for last; None if none was.
    """
    if asked == template_digest(fresh):
        return fresh
    return fresh | {"spec": fresh["spec"] | {"template": _placed(before["spec"]["template"], fresh)}}


def template_change(fresh: K8sObject, before: K8sObject) -> TemplateChange | None:
    """Return what the new template would change; None if nothing."""
    kept = _placed(before["spec"]["template"], fresh)
    paths = tuple(_differences(kept, fresh["spec"]["template"], ""))
    return TemplateChange(digest=template_digest(fresh), paths=paths) if paths else None


def template_digest(deployment: K8sObject) -> str:
    """Return the SHA-256 (hex) of a Deployment's pod template without its placement."""
    template = deployment["spec"]["template"]
    pod = {key: value for key, value in template["spec"].items() if key != _PLACEMENT}
    return hashlib.sha256(canonical(template | {"spec": pod}).encode()).hexdigest()


def _placed(template: dict[str, Any], fresh: K8sObject) -> dict[str, Any]:
    """Return a template with the placement of another Deployment."""
    placement = fresh["spec"]["template"]["spec"].get(_PLACEMENT)
    pod = {key: value for key, value in template["spec"].items() if key != _PLACEMENT}
    return template | {"spec": pod if placement is None else pod | {_PLACEMENT: placement}}


def _differences(old: Any, new: Any, path: str) -> Iterator[str]:
    """Yield the paths of the members that differ; list items are compared by their position."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _differences(one, other, f"{path}[{index}]")
    elif old != new:
        yield path
