"""The form in which objects are sent to the API server.

Invariant: every program that applies an object of a stack sends this form. Two forms under one field manager would
take fields from each other.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final

from reside.model.constants import FIELD_MANAGER

if TYPE_CHECKING:
    from reside.model.stacks import K8sObject

APPLY_ANNOTATIONS: Final = {"pulumi.com/patchFieldManager": FIELD_MANAGER, "pulumi.com/skipAwait": "true"}
"""Apply under the Sentinel's field manager, and don't wait for readiness."""
ANNOTATIONS: Final = {
    **APPLY_ANNOTATIONS,
    "pulumi.com/deletionPropagationPolicy": "background",
}
"""How the provider shall treat each object.

Deletion in the background takes the object away at once and leaves its pods to the garbage collector. In the
foreground, the provider's default, most kinds are waited for, and those that are not (Deployment, StatefulSet, Job)
cannot be replaced: their successor is applied onto an object that is still going.
"""


def as_applied(manifest: K8sObject, namespace: str) -> K8sObject:
    """The manifest as it is sent to the API server.

    Adds namespace and annotations; a Secret's ``stringData`` becomes ``data``, because server-side apply does not own
    what it wrote as ``stringData`` and would never remove a key. Whoever applies the same object by other means must
    send this form, or the two take fields from each other.
    """
    metadata = manifest.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), **ANNOTATIONS}
    result = {**manifest, "metadata": {**metadata, "namespace": namespace, "annotations": annotations}}
    strings = result.pop("stringData", None)
    if strings:
        encoded = {key: base64.b64encode(str(value).encode()).decode() for key, value in strings.items()}
        result["data"] = {**(result.get("data") or {}), **encoded}
    return result


def token(manifest: K8sObject) -> str:
    """Pulumi's type token of a manifest: ``kubernetes:apps/v1:Deployment``, ``kubernetes:core/v1:Secret``."""
    version = str(manifest["apiVersion"])
    return f"kubernetes:{version if '/' in version else f'core/{version}'}:{manifest['kind']}"
