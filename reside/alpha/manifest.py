"""Alpha's own manifest. A test compares it with the label of Alpha's image (images/alpha/manifest.yaml).

The bootstrap needs it before any image is loaded, to write Alpha's expected permissions on the Sentinel.
"""

from __future__ import annotations

from typing import Final

from reside.model.constants import ALPHA_CONTRACT, ALPHA_IDENTITY, ALPHA_NAME, SENTINEL_CONTRACT, SENTINEL_NAME
from reside.model.kinds import PERMITTED
from reside.model.manifest import Implementation, ManifestRequirement, ReplicaInfo, ReplicaManifest, RequiredPermission
from reside.model.permissions import Grant, PermissionRef

MANIFEST: Final = ReplicaManifest(
    type="replica",
    identity=ALPHA_IDENTITY,
    info=ReplicaInfo(name=ALPHA_NAME, kind="long-running", exclusive=True, scalable=True),
    implementations={ALPHA_NAME: Implementation(identity=ALPHA_CONTRACT)},
    requirements={
        SENTINEL_NAME: ManifestRequirement(
            identity=SENTINEL_CONTRACT, permissions=tuple(RequiredPermission(name=kind.manage) for kind in PERMITTED)
        )
    },
)


def sentinel_grants(account: str) -> dict[PermissionRef, Grant]:
    """Return the grants on the Sentinel that Alpha's manifest requires for its account."""
    required = MANIFEST.requirements[SENTINEL_NAME].permissions
    return {PermissionRef(account, SENTINEL_CONTRACT, permission.name): Grant(granted=True) for permission in required}
