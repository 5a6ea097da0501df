"""Show the logs of a replica's pods to an operator who may read them, but has no access to Kubernetes.

An answer is small and comes soon, whatever the pods write: of each pod it has a number of lines, and all of them
together share a mebibyte. Reading changes nothing, so a request may be carried out again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter

from reside.model.constants import REPLICA_CONTAINER, REPLICA_LABEL
from reside.model.errors import InvalidInput, ResideError
from reside.model.names import check_name
from reside.model.pod_logs import PodLog, pod_state
from reside.model.sentinel_data import PODS, REPLICA, TAIL
from reside.sentinel.errors import fault_text
from reside.sentinel.objects.identity import metadata
from reside.sentinel.term.operator_requests import Result

if TYPE_CHECKING:
    from reside.model.stacks import K8sObject
    from reside.sentinel.contract.operator_requests import OperatorRequest
    from reside.sentinel.guard.api import KubernetesApi

MOST_PODS: Final = 20
"""Pods in an answer: those that were made last."""
MOST_LINES: Final = 10_000
LINES: Final = 200
"""Lines of each pod, if the request names no number."""
SIZE: Final = 1024 * 1024
"""Bytes of all logs in an answer."""
READ_S: Final = 20.0
"""Seconds for a log: a pod that writes faster than it is read would never end."""


class PodLogs:
    """Carries out requests for logs.

    Args:
        api: the Kubernetes API.
    """

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api

    async def show(self, request: OperatorRequest) -> Result:
        """Return the state of a replica's pods, and the end of their logs.

        Raises:
            InvalidInput: the request is malformed, or the replica has no pods.
        """
        name, lines = request.text(REPLICA), request.number(TAIL, LINES, MOST_LINES)
        pods = await self._api.list_pods({REPLICA_LABEL: check_name(name)})
        if not pods:
            raise InvalidInput(f"{name} has no pods now: see `reside replica describe {name}`")
        chosen = sorted(pods, key=_age)[-MOST_PODS:]
        size = SIZE // len(chosen)
        logs = await asyncio.gather(*(self._of(pod, lines, size) for pod in chosen))
        return Result({REPLICA: name, PODS: len(logs)}, TypeAdapter(list[PodLog]).dump_json(logs))

    async def _of(self, found: K8sObject, lines: int, size: int) -> PodLog:
        log = await self._log(metadata(found)["name"], lines, size)
        return log.model_copy(update={"state": pod_state(found)})

    async def _log(self, pod: str, lines: int, size: int) -> PodLog:
        try:
            async with asyncio.timeout(READ_S):
                found = await self._api.log_end(pod, REPLICA_CONTAINER, lines=lines, size=size)
        except TimeoutError:
            return PodLog(pod=pod, error=f"its log was not read within {READ_S:.0f} s: ask for fewer lines")
        except ResideError as error:
            return PodLog(pod=pod, error=fault_text(error))
        is_cut = len(found) == size
        text = found.decode(errors="replace")
        return PodLog(pod=pod, text=text.partition("\n")[2] or text if is_cut else text, is_cut=is_cut)


def _age(pod: K8sObject) -> tuple[Any, Any]:
    return metadata(pod).get("creationTimestamp", ""), metadata(pod)["name"]
