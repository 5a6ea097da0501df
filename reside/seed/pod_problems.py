"""Why pods are not ready, for the error of a wait that ends without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lightkube.resources.core_v1 import Pod

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import lightkube

_ORDINARY = ("ContainerCreating", "PodInitializing")


async def pod_problems(client: lightkube.AsyncClient, labels: Mapping[str, str]) -> str:
    """Return what keeps the pods with these labels from starting, in parentheses; an empty text if nothing does."""
    found = [problem async for pod in client.list(Pod, labels=dict(labels)) for problem in problems(pod)]
    return f" ({'; '.join(found)})" if found else ""


def problems(pod: Pod) -> Iterator[str]:
    """Yield what keeps a pod from starting."""
    name = pod.metadata.name if pod.metadata else ""
    if pod.status is None:
        return
    for status in [*(pod.status.initContainerStatuses or ()), *(pod.status.containerStatuses or ())]:
        waiting = status.state.waiting if status.state else None
        if waiting is None or waiting.reason is None or waiting.reason in _ORDINARY:
            continue
        cure = f"`kubectl logs {name}`" if status.restartCount else f"`kubectl describe pod {name}`"
        yield f"{name}: {waiting.reason}, see {cure}"
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            yield f"{name}: {condition.message or condition.reason}"
