"""Live objects as the Sentinel reports them.

Reports omit the API server's bookkeeping (`managedFields`, `resourceVersion`), so that a report changes only when the
object does. They also omit values of Secrets, and kubectl's last-applied annotation, which repeats those values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reside.sentinel.objects.identity import metadata
from reside.sentinel.objects.masking import masked

if TYPE_CHECKING:
    from reside.model.stacks import K8sObject

_BOOKKEEPING: Final = frozenset({"managedFields", "resourceVersion"})
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def reported(live: K8sObject) -> K8sObject:
    """Return the live object as it may be written to Jazz."""
    meta = {name: value for name, value in metadata(live).items() if name not in _BOOKKEEPING}
    if _LAST_APPLIED in (meta.get("annotations") or {}):
        meta["annotations"] = {name: text for name, text in meta["annotations"].items() if name != _LAST_APPLIED}
    return masked(live | {"metadata": meta})
