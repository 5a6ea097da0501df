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
"""How the provider treats each object.

Background deletion removes the object immediately and leaves its pods to the garbage collector. With foreground
deletion, the provider's default, the provider waits for most kinds. It does not wait for Deployment, StatefulSet and
Job, so these can't be replaced: the new object would be applied to one that is still being deleted.
"""


def as_applied(obj: K8sObject, namespace: str) -> K8sObject:
    """Return the object as it is sent to the API server.

    Adds namespace and annotations. A Secret's `stringData` becomes `data`, because server-side apply does not own what
    it wrote as `stringData` and would never remove a key.
    """
    metadata = obj.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), **ANNOTATIONS}
    result = {**obj, "metadata": {**metadata, "namespace": namespace, "annotations": annotations}}
    strings = result.pop("stringData", None)
    if strings:
        encoded = {key: base64.b64encode(str(value).encode()).decode() for key, value in strings.items()}
        result["data"] = {**(result.get("data") or {}), **encoded}
    return result


def token(obj: K8sObject) -> str:
    """Return Pulumi's type token of an object: `kubernetes:apps/v1:Deployment`, `kubernetes:core/v1:Secret`."""
    version = str(obj["apiVersion"])
    return f"kubernetes:{version if '/' in version else f'core/{version}'}:{obj['kind']}"
