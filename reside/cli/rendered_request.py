"""Render a load request for the person who decides on it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich.console import Group as Rendered

from reside.cli import output
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import RenderableType

    from reside.model.entities import (
        ApproveRequest,
        ChangedPermission,
        Difference,
        GrantedPermission,
        HealthPolicy,
        LoadRequest,
    )


def render_request(request: LoadRequest) -> RenderableType:
    """Render a request that requires approval: identity, requirements, permissions, preview."""
    content = request.approve_request
    if content is None:
        raise InvalidInput(f"load request {request.id} contains nothing to approve")
    parts: list[RenderableType] = [output.table(["", ""], _head(request, content), title=f"load request {request.id}")]
    if content.requirements:
        parts.append(
            output.table(
                ["REQUIRES", "FROM", "ALTERNATIVES", "PERMISSIONS"], _requirements(content), title="\nrequirements"
            )
        )
    found = content.difference
    if found is not None and (found.added or found.removed):
        head = [f"SINCE VERSION {found.version}", "PERMISSION", "OF"]
        parts.append(output.table(head, _difference(found), title="\npermissions"))
    changes = (request.preview or {}).get("changes") or []
    rows = [(c["action"], c["object"], ", ".join(c.get("paths", ()))) for c in changes]
    parts.append(output.table(["ACTION", "OBJECT", "PATHS"], rows, title="\npreview"))
    advice = (request.preview or {}).get("advice") or []
    if advice:
        parts.append(output.table(["ADVISORY RULE", "OBJECTS", "VIOLATION"], _advice(advice), title="\npolicy"))
    return Rendered(*parts)


def _advice(found: list[dict[str, str]]) -> list[tuple[str, str, str]]:
    """Return one row for each rule and message, with all objects that they concern."""
    rows: dict[tuple[str, str], list[str]] = {}
    for each in found:
        rows.setdefault((each["rule"], each["message"]), []).append(each["object"])
    return [(rule, ", ".join(objects), message) for (rule, message), objects in rows.items()]


def _head(request: LoadRequest, content: ApproveRequest) -> list[tuple[str, Any]]:
    return [
        ("name", content.name),
        ("image", request.image),
        ("identity", content.identity),
        ("digest", content.digest),
        ("class", content.info.kind + (", scalable" if content.info.scalable else "")),
        ("implements", ", ".join(content.implementations.values()) or "none"),
        ("owner", request.owner),
        ("health", _health(request.health)),
        *([("probes", "none: a pod counts as ready once its process runs")] if content.probes == "none" else []),
        *([] if request.canary_percent is None else [("canary", _canary(request.canary_percent))]),
    ]


def _canary(percent: int) -> str:
    return f"{percent} % of the pods, rounded down, but at least one; the current version keeps the others"


def _health(health: HealthPolicy) -> str:
    ready = f" for {health.min_ready_s} s" if health.min_ready_s else ""
    failure = "stays" if health.on_failure == "stay" else "is rolled back"
    return f"ready{ready} within {health.deadline_s} s; otherwise it {failure}"


def _requirements(content: ApproveRequest) -> list[tuple[str, ...]]:
    return [
        (
            f"{key} ({requirement.contract})" + (" optional" if requirement.optional else ""),
            ", ".join(f"{r.name} ({r.id})" for r in requirement.replicas) or "none",
            ", ".join(f"{r.name} ({r.id})" for r in requirement.alternatives),
            ", ".join(_permission(permission) for permission in requirement.permissions),
        )
        for key, requirement in content.requirements.items()
    ]


def _difference(found: Difference) -> list[tuple[str, ...]]:
    rows = [("new", permission) for permission in found.added] + [("gone", permission) for permission in found.removed]
    return [(word, _permission(p), f"{p.replica} ({p.contract})") for word, p in rows]


def _permission(permission: GrantedPermission | ChangedPermission) -> str:
    instance = f" for {permission.instance_id}" if permission.instance_id else ""
    params = f" with {json.dumps(permission.params, sort_keys=True)}" if permission.params else ""
    return permission.permission + instance + params
