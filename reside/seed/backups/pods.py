"""What runs in pods of a cluster during a backup or its restore."""

from __future__ import annotations

from contextlib import asynccontextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import Pod

from reside.access.client import is_missing
from reside.access.execution import running
from reside.access.waiting import until
from reside.common.polling import Missing
from reside.model.constants import JAZZ_NAME, REPLICA_LABEL, RESTORE_LABEL, SENTINEL_NAME, SENTINEL_STATE_DIR
from reside.model.errors import NotReady
from reside.seed import platform
from reside.seed.kubernetes import is_ready
from reside.seed.pod_problems import pod_problems

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import lightkube

    from reside.access.execution import PodProgram
    from reside.access.target import Target

JAZZ_POD: Final = f"{JAZZ_NAME}-0"
DATABASE: Final = "/data/jazz.db"
LOADER: Final = "import sys; exec(eval(sys.stdin.buffer.readline()))"
_HOUR: Final = 3600


@asynccontextmanager
async def program(target: Target, pod: str, action: str, path: str) -> AsyncIterator[PodProgram]:
    """Run an action of `in_pod` in a pod. Its text is sent as the first line of the input: a URL has a limit."""
    source = files(__package__).joinpath("in_pod.py").read_text(encoding="utf-8")
    command = ["python3", "-c", LOADER, action, path]
    async with running(target, pod, command, f"`{action} {path}` in pod {pod}") as started:
        await started.send(f"{source!r}\n".encode())
        yield started


async def fingerprint(target: Target, pod: str) -> str:
    """Return what changes with any file of the Sentinel's volume."""
    async with program(target, pod, "fingerprint", SENTINEL_STATE_DIR) as started:
        line = await started.read_line()
        async for _ in started.chunks():
            pass
        return line


async def sentinel_pod(client: lightkube.AsyncClient) -> str:
    """Return the name of a ready pod of the Sentinel.

    Raises:
        NotReady: there is none.
    """
    async for pod in client.list(Pod, labels={REPLICA_LABEL: SENTINEL_NAME}):
        if pod.metadata and pod.metadata.name and is_ready(pod):
            return pod.metadata.name
    raise NotReady(f"no pod of {SENTINEL_NAME} is ready: a backup needs the running cluster")


def writer_pod(claim: str, folder: str, like: dict[str, Any]) -> dict[str, Any]:
    """Return a pod that has a volume, and does nothing but wait for programs.

    Args:
        claim: name of the volume claim; the pod has the name `restore-<claim>`.
        folder: where the volume is mounted.
        like: spec of a pod, whose image and credentials of registries it has.
    """
    name = f"restore-{claim}"
    container = {
        "name": "writer",
        "image": like["containers"][0]["image"],
        "command": ["python3", "-c", f"import time; time.sleep({_HOUR})"],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"mountPath": folder, "name": "data"}],
    }
    spec = {
        "activeDeadlineSeconds": _HOUR,
        "automountServiceAccountToken": False,
        "containers": [container],
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "securityContext": platform.pod_security(),
        "terminationGracePeriodSeconds": 0,
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
    }
    if "imagePullSecrets" in like:
        spec["imagePullSecrets"] = like["imagePullSecrets"]
    metadata = {"name": name, "labels": {RESTORE_LABEL: claim}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


async def start(client: lightkube.AsyncClient, document: dict[str, Any], deadline: float) -> str:
    """Replace the writer pod, and wait until the new one is ready; return its name."""
    name: str = document["metadata"]["name"]
    await end(client, name, deadline)
    body: Any = Pod.from_dict(document)
    await client.create(body)

    async def check() -> None:
        pod = await client.get(Pod, name)
        if not is_ready(pod):
            raise Missing(f"it is not ready{await pod_problems(client, document['metadata']['labels'])}")

    await until(check, f"the start of pod {name}", deadline)
    return name


async def end(client: lightkube.AsyncClient, name: str, deadline: float) -> None:
    """Delete a pod, if there is one, and wait until it is gone, so that others can use its volume."""

    async def gone() -> None:
        try:
            await client.delete(Pod, name)
        except ApiError as error:
            if is_missing(error):
                return
            raise
        raise Missing("it still exists")

    await until(gone, f"the end of pod {name}", deadline)
