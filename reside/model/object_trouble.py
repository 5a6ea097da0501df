"""What keeps an object other than a pod from being current, as Kubernetes' events about it say. Pure.

A Deployment says in its status that its pods are refused; a StatefulSet, a Job and a claim say such things in events
only. The text contains no pod name and no number of attempts, because each change of it is stored.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_REASONS: Final = {
    "StatefulSet": frozenset({"FailedCreate"}),
    "Job": frozenset({"FailedCreate"}),
    "PersistentVolumeClaim": frozenset({"ProvisioningFailed", "VolumeResizeFailed"}),
}
"""Kind → reasons of events that say why an object of it is not current."""
_PREFIX: Final = re.compile(r"^(?:create Pod \S+ in StatefulSet \S+ failed error: |Error creating: )?")
_POD: Final = re.compile(r'^pods "[^"]*" is forbidden: ')
_LONGEST: Final = 300
"""Characters of a message that are kept."""


def object_trouble(event: Mapping[str, Any]) -> str | None:
    """Return what an event says about its object as `Reason: details`; None if it says nothing that is reported.

    Args:
        event: the event, as the Kubernetes API serves it.
    """
    about, reason = event.get("involvedObject") or {}, event.get("reason")
    if reason not in _REASONS.get(str(about.get("kind")), ()):
        return None
    message = " ".join(str(event.get("message") or "").split())
    text = _POD.sub("", _PREFIX.sub("", message))
    return f"{reason}: {text[:_LONGEST]}" if text else str(reason)
