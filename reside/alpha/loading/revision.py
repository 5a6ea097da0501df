"""The revision of an approval: a digest of everything that it grants. Pure.

An approver names the revision that was previewed. So what is granted is what the approver saw: the image's digest, the
name, the requirements with the chosen replicas, all permissions with instance ids and params, the objects, and what
is done to which version of each live object.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reside.model.entities import ApproveRequest, LoadRequest, Replica, Requirement
    from reside.model.previews import StackPreview
    from reside.model.stacks import DesiredStack


def approval_revision(
    request: LoadRequest,
    approved: ApproveRequest,
    existing: Replica | None,
    stack: DesiredStack,
    preview: StackPreview,
) -> str:
    """Return the revision of what the approval of a request grants, as hexadecimal SHA-256.

    Alternatives and texts for people are not part of it: they grant nothing.

    Args:
        request: the load request.
        approved: what is resolved for it.
        existing: the replica that it updates; None for a new instance.
        stack: the stack that the load leads to.
        preview: what its apply would change.
    """
    granted = {
        "image": request.image,
        "owner": request.owner,
        "health": request.health.document(),
        "canary": request.canary_percent,
        "replica": None if existing is None else existing.id,
        "name": approved.name,
        "identity": approved.identity,
        "digest": approved.digest,
        "info": approved.info.model_dump(mode="json", by_alias=True),
        "implementations": approved.implementations,
        "requirements": {key: _requirement(requirement) for key, requirement in approved.requirements.items()},
        "stack": stack.revision,
        "changes": sorted([c.object, c.action, c.live] for c in preview.changes if c.action != "same"),
    }
    return hashlib.sha256(json.dumps(granted, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _requirement(requirement: Requirement) -> dict[str, Any]:
    return {
        "contract": requirement.contract,
        "replicas": [[replica.id, replica.account] for replica in requirement.replicas],
        "permissions": [[p.permission, p.instance_id, p.params] for p in requirement.permissions],
    }
