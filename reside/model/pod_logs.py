"""The state of one pod and the end of its log, as an operator gets it (docs/model.md, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict

from reside.model.constants import VERSION_LABEL
from reside.model.log_lines import end_within, has_times, lines_after
from reside.model.pod_problem import pod_problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from reside.model.log_lines import Cursor

_LONGEST: Final = 300
"""Characters of an error."""


class PodState(BaseModel):
    """What Kubernetes says about a pod.

    Attributes:
        phase: its phase, or `Terminating`.
        ready: whether it serves.
        restarts: how often its containers were started again.
        version: the version of the replica that it runs.
        node: the node that it runs on; None as long as there is none.
        created: when it was created, in ISO 8601.
        problem: what keeps it from running; None if nothing does.
    """

    model_config = ConfigDict(frozen=True)

    phase: str
    ready: bool = False
    restarts: int = 0
    version: str | None = None
    node: str | None = None
    created: str | None = None
    problem: str | None = None


def pod_state(pod: Mapping[str, Any]) -> PodState:
    """Return the state of a pod, as the Kubernetes API serves it."""
    meta, status = pod.get("metadata") or {}, pod.get("status") or {}
    conditions = {each.get("type"): each.get("status") for each in status.get("conditions") or ()}
    return PodState(
        phase="Terminating" if meta.get("deletionTimestamp") else str(status.get("phase") or "Unknown"),
        ready=conditions.get("Ready") == "True",
        restarts=sum(each.get("restartCount") or 0 for each in status.get("containerStatuses") or ()),
        version=(meta.get("labels") or {}).get(VERSION_LABEL),
        node=(pod.get("spec") or {}).get("nodeName"),
        created=meta.get("creationTimestamp"),
        problem=pod_problem(pod),
    )


class PodLog(BaseModel):
    """What a pod of a replica wrote last.

    Attributes:
        pod: its name.
        text: the end of its log.
        is_cut: whether lines before it were left out to keep the answer small, although they were asked for.
        error: why the log can't be read, in place of a text.
        cursor: the last line that is in the text or was read before, for a reader that follows the log; None if the
            request does not follow it.
        state: what Kubernetes says about it; None from a Sentinel of an earlier release.
    """

    model_config = ConfigDict(frozen=True)

    pod: str
    text: str = ""
    is_cut: bool = False
    error: str | None = None
    cursor: str | None = None
    state: PodState | None = None


def has_news(logs: Iterable[PodLog], pods: Collection[str]) -> bool:
    """Return whether there is something that a reader of these pods does not have: a line, or a pod that came or went.

    Args:
        logs: what has been written after what the reader has.
        pods: names of the pods that the reader knows.
    """
    found = list(logs)
    return {log.pod for log in found} != set(pods) or any(log.text for log in found)


def new_text(pod: str, raw: bytes, after: Cursor | None, *, lines: int, size: int) -> PodLog:
    """Return what a reader gets of a log.

    Args:
        pod: name of the pod.
        raw: the end of its log; with the time of each line if there is a cursor.
        after: what the reader has; None if it does not follow the log.
        lines: the number of lines that were asked for.
        size: the number of bytes that were asked for, and of JSON that the reader gets.
    """
    is_cut = len(raw) == size
    text = raw.decode(errors="replace")
    whole = text.partition("\n")[2] or text if is_cut else text
    cursor = None
    if after is not None:
        if text and not is_cut and not has_times(text):  # the kubelet says why there is no log, as if it were one
            return PodLog(pod=pod, error=text.strip()[:_LONGEST], cursor=str(after))
        is_cut = is_cut or (after.since is not None and raw.count(b"\n") >= lines)
        whole, last = lines_after(after, whole)
        cursor = str(last)
    end = end_within(whole, size)
    return PodLog(pod=pod, text=end, is_cut=is_cut or len(end) < len(whole), cursor=cursor)
