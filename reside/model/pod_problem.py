"""What keeps a pod from running or from being ready, in the words of Kubernetes. Pure.

The text changes as rarely as possible, because each change is stored: it contains no pod name, back-off or attempt. A
container that is restarting has one text, whether it waits, runs or has just ended. Messages that a program of the pod
writes are omitted, because they may contain secrets. So of the event about a failing probe, which may quote the
program's response, only the probe, the HTTP status and known causes are kept.
"""

from __future__ import annotations

import re
from datetime import datetime
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
UNHEALTHY: Final = "Unhealthy"
"""The reason of an event about a failing probe."""
STEADY_S: Final = 5
"""Seconds after which a failing probe is a problem. The probes of each pod fail while its program starts."""
_PROBE: Final = re.compile(r"(Startup|Readiness|Liveness) probe (failed|errored)\b")
_STATUS: Final = re.compile(r": HTTP probe failed with statuscode: (\d{3})$")
_CAUSES: Final = {
    "connection refused": "connection refused",
    "context deadline exceeded": "timeout",
    "Client.Timeout exceeded": "timeout",
    "no route to host": "no route to host",
    "connection reset by peer": "connection reset by peer",
}
"""What the kubelet's HTTP client says → what is reported."""


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


def failing_probe(event: Mapping[str, Any]) -> str | None:
    """Return the problem of a pod whose probe has been failing for `STEADY_S`, as `Unhealthy: …`; None if it has not.

    Args:
        event: an event about the pod, as the Kubernetes API serves it; the kubelet counts equal ones.
    """
    message = event.get("message") or ""
    probe = _PROBE.match(message)
    if event.get("reason") != UNHEALTHY or probe is None or _seconds(event) < STEADY_S:
        return None
    status = _STATUS.search(message)
    causes = [said for text, said in _CAUSES.items() if text in message]
    why = f"HTTP status {status[1]}" if status else next(iter(causes), None)
    return f"{UNHEALTHY}: {probe[0]}" + (f": {why}" if why else "")


def _seconds(event: Mapping[str, Any]) -> float:
    """Return the time between the first and the last occurrence of an event."""
    first, last = event.get("firstTimestamp"), event.get("lastTimestamp")
    if not isinstance(first, str) or not isinstance(last, str):
        return 0
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


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
