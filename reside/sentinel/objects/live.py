"""Live objects as the Sentinel reports them, and as it keeps them in memory.

Reports omit the API server's bookkeeping (`managedFields`, `resourceVersion`), so that a report changes only when the
object does. They also omit values of Secrets, and kubectl's last-applied annotation, which repeats those values; and
what the declarer knows and no reader needs: templates of pods and claims, and the data of ConfigMaps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reside.sentinel.objects import managed_fields
from reside.sentinel.objects.identity import metadata
from reside.sentinel.objects.masking import masked

if TYPE_CHECKING:
    from reside.model.stacks import K8sObject

_BOOKKEEPING: Final = frozenset({"managedFields", "resourceVersion"})
_TEMPLATES: Final = frozenset({"template", "volumeClaimTemplates", "jobTemplate"})
_UNREPORTED: Final = {"ConfigMap": ("data", "binaryData")}
_DECLARED_METADATA: Final = ("name", "labels", "annotations")
_ENGINE_PREFIX: Final = "pulumi.com/"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def reported(live: K8sObject) -> K8sObject:
    """Return the live object as it may be written to Jazz."""
    live = public(live)
    meta = {name: value for name, value in metadata(live).items() if name not in _BOOKKEEPING}
    found = {name: value for name, value in live.items() if name not in _UNREPORTED.get(str(live.get("kind")), ())}
    if isinstance(spec := live.get("spec"), dict):
        found["spec"] = {name: value for name, value in spec.items() if name not in _TEMPLATES}
    return found | {"metadata": meta}


def public(obj: K8sObject) -> K8sObject:
    """Return an object without values of Secrets and without kubectl's annotation that repeats them."""
    annotations = metadata(obj).get("annotations") or {}
    if _LAST_APPLIED in annotations:
        annotations = {name: text for name, text in annotations.items() if name != _LAST_APPLIED}
        obj = obj | {"metadata": metadata(obj) | {"annotations": annotations}}
    return masked(obj)


def shown_whole(obj: K8sObject) -> K8sObject:
    """Return a live or desired object as a preview shows it: what was declared, with secrets masked.

    Its status, what the API server keeps in its metadata, and our own annotations are left out.
    """
    obj = public(obj)
    meta = {name: value for name, value in metadata(obj).items() if name in _DECLARED_METADATA}
    if annotations := meta.pop("annotations", None):
        kept_ones = {name: text for name, text in annotations.items() if not name.startswith(_ENGINE_PREFIX)}
        meta |= {"annotations": kept_ones} if kept_ones else {}
    return {name: value for name, value in obj.items() if name not in ("apiVersion", "status")} | {"metadata": meta}


def kept(live: K8sObject) -> K8sObject:
    """Return the live object as it is kept in memory: its `managedFields` only of others, without writers of a status.

    What is left out is their largest part. What stays says what others have changed or added.
    """
    if not metadata(live).get("managedFields"):
        return live
    meta = {name: value for name, value in metadata(live).items() if name != "managedFields"}
    others = managed_fields.others(live)
    return live | {"metadata": meta | ({"managedFields": others} if others else {})}
