"""What keeps a pod from running, in the words of Kubernetes. Pure.

The text changes as rarely as possible, because each change is stored: it contains no pod name, back-off or attempt. A
container that is restarting has one text, whether it waits, runs or has just ended. Messages that a program of the pod
writes are omitted, because they may contain secrets.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CRASHES: Final = "CrashLoopBackOff"
"""The reason of a container that ends again and again."""
_ORDINARY: Final = frozenset({"ContainerCreating", "PodInitializing"})
_PULL: Final = frozenset({"ErrImagePull", "ImagePullBackOff"})
_BACK_OFF: Final = re.compile(r'^Back-off pulling image "[^"]*"(: ErrImagePull: )?')
_LONGEST: Final = 300
"""Characters of a message that are kept."""


def pod_problem(pod: Mapping[str, Any]) -> str | None:
    """Return what keeps a pod from running as `Reason: details`; None if nothing does.

    Args:
        pod: the pod, as the Kubernetes API serves it.
    """
    status = pod.get("status") or {}
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    found = [text for container in containers for text in _container(container)]
    found += [text for condition in status.get("conditions") or () for text in _unscheduled(condition)]
    return found[0] if found else None


def _container(status: Mapping[str, Any]) -> Iterator[str]:
    """Yield why a container does not run."""
    state = status.get("state") or {}
    ended = state.get("terminated") or (status.get("lastState") or {}).get("terminated")
    waiting = state.get("waiting") or {}
    reason = waiting.get("reason")
    if reason in _PULL:
        yield _line("ImagePullBackOff", _BACK_OFF.sub("", waiting.get("message") or ""))
    elif status.get("restartCount") and ended and not status.get("ready"):
        why = f" ({ended['reason']})" if ended.get("reason") not in (None, "Error", "Completed") else ""
        yield f"{CRASHES}: exit code {ended.get('exitCode')}{why}"
    elif reason is not None and reason not in _ORDINARY:
        yield _line(reason, waiting.get("message") or "")


def _unscheduled(condition: Mapping[str, Any]) -> Iterator[str]:
    if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
        yield _line(condition.get("reason") or "Unschedulable", condition.get("message") or "")


def _line(reason: str, message: str) -> str:
    """Return one line of limited length."""
    text = " ".join(message.split())
    return f"{reason}: {text[:_LONGEST]}" if text else reason
