"""Why pods are not ready, for the error of a wait that ends without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lightkube.resources.core_v1 import Pod

from reside.model.pod_problem import CRASHES, pod_problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    import lightkube


async def pod_problems(client: lightkube.AsyncClient, labels: Mapping[str, str]) -> str:
    """Return what keeps the pods with these labels from starting, in parentheses; an empty text if nothing does."""
    found = [text async for pod in client.list(Pod, labels=dict(labels)) if (text := described(pod)) is not None]
    return f" ({'; '.join(found)})" if found else ""


def described(pod: Pod) -> str | None:
    """Return what keeps a pod from starting, and the command that shows more; None if nothing does."""
    name = pod.metadata.name if pod.metadata else ""
    problem = pod_problem(pod.to_dict())
    if problem is None:
        return None
    cure = f"kubectl logs {name}" if problem.startswith(CRASHES) else f"kubectl describe pod {name}"
    return f"{name}: {problem}, see `{cure}`"
