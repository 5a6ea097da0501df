"""Read the logs of pods with the credentials of a kubeconfig."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import Pod
from lightkube.resources.core_v1 import PodLog as LogOfPod

from reside.model.log_lines import Cursor, parse_cursor
from reside.model.pod_logs import PodLog, new_text, pod_state

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import lightkube

SIZE: Final = 1024 * 1024
"""Bytes that are read of a log at most."""
READ_S: Final = 20.0
"""Seconds for a log: a pod that writes faster than it is read would never end."""


@dataclass(frozen=True)
class Component:
    """Pods whose logs are read.

    Attributes:
        labels: the labels of the pods.
        container: the container whose log is read.
    """

    labels: Mapping[str, str]
    container: str


async def read_logs(
    client: lightkube.AsyncClient, components: Sequence[Component], since: Mapping[str, str] | None, lines: int
) -> list[PodLog]:
    """Return the end of the log of each pod of these components.

    Args:
        client: client of the Kubernetes API, bound to the namespace.
        components: the components.
        since: pod → position of the last line that the reader has; only what is new is returned. None: the reader does
            not follow the logs.
        lines: number of lines of each pod.

    Raises:
        ApiError: the pods can't be listed. A log that can't be read has an error in place of its text.
    """
    return [log for component in components for log in await _of_component(client, component, since, lines)]


async def _of_component(
    client: lightkube.AsyncClient, component: Component, since: Mapping[str, str] | None, lines: int
) -> list[PodLog]:
    pods = [pod.to_dict() async for pod in client.list(Pod, labels=dict(component.labels))]
    pods.sort(key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))
    return await asyncio.gather(*(_of_pod(client, component, pod, since, lines) for pod in pods))


async def _of_pod(
    client: lightkube.AsyncClient,
    component: Component,
    pod: dict[str, Any],
    since: Mapping[str, str] | None,
    lines: int,
) -> PodLog:
    name = str(pod["metadata"]["name"])
    after = None
    if since is not None:
        after = parse_cursor(since[name]) if name in since else Cursor()
    try:
        async with asyncio.timeout(READ_S):
            raw = await _end(client, name, component.container, lines, after)
        log = new_text(name, raw, after, lines=lines, size=SIZE)
    except TimeoutError:
        why = f"its log was not read within {READ_S:.0f} s: ask for fewer lines"
        log = PodLog(pod=name, error=why, cursor=None if after is None else str(after))
    except ApiError as error:
        if error.status.code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise
        why = error.status.message or str(error)
        log = PodLog(pod=name, error=why, cursor=None if after is None else str(after))
    return log.model_copy(update={"state": pod_state(pod)})


async def _end(client: lightkube.AsyncClient, pod: str, container: str, lines: int, after: Cursor | None) -> bytes:
    """Return the last lines of a log, and of these at most the last `SIZE` bytes; with times if there is a cursor."""
    inner: Any = client._client  # noqa: SLF001 - lightkube's own method takes no time, and holds all of the log in memory
    params: dict[str, Any] = {"container": container, "tailLines": lines}
    if after is not None:
        params |= {"timestamps": "true"} | ({"sinceTime": after.since} if after.since else {})
    request = inner.prepare_request("get", LogOfPod, name=pod, params=params)
    response = await inner.send(inner.build_adapter_request(request), stream=True)
    try:
        if response.is_error:
            await response.aread()
        inner.raise_for_status(response)
        end = bytearray()
        async for piece in response.aiter_bytes():
            end += piece
            del end[:-SIZE]
        return bytes(end)
    finally:
        await response.aclose()
