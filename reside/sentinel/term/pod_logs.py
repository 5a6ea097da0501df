"""Show the logs of a replica's pods to an operator who may read them, but has no access to Kubernetes.

An answer is small and comes soon, whatever the pods write: of each pod it has a number of lines, and all of them
together share a mebibyte of JSON. Reading changes nothing, so a request may be carried out again.

An operator follows logs by one request after another. Each names what the operator has, and its answer waits until
there is more, or for the time that the request says. So a quiet replica costs a look per second, and no write.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter

from reside.model.constants import REPLICA_CONTAINER, REPLICA_LABEL
from reside.model.errors import InvalidInput, ResideError
from reside.model.log_lines import Cursor, parse_cursor
from reside.model.names import check_name
from reside.model.pod_logs import PodLog, has_news, new_text, pod_state
from reside.model.sentinel_data import PODS, REPLICA, SINCE, TAIL, WAIT
from reside.sentinel.errors import fault_text
from reside.sentinel.objects.identity import metadata
from reside.sentinel.term.operator_requests import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reside.model.stacks import K8sObject
    from reside.sentinel.contract.operator_requests import OperatorRequest
    from reside.sentinel.guard.api import KubernetesApi

MOST_PODS: Final = 20
"""Pods in an answer: those that were made last."""
MOST_LINES: Final = 10_000
LINES: Final = 200
"""Lines of each pod, if the request names no number."""
SIZE: Final = 1024 * 1024
"""Bytes of all logs in an answer, as JSON."""
READ_S: Final = 20.0
"""Seconds for a log: a pod that writes faster than it is read would never end."""
MOST_WAIT_S: Final = 60


class PodLogs:
    """Carries out requests for logs.

    Args:
        api: the Kubernetes API.
    """

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api

    async def show(self, request: OperatorRequest) -> Result | None:
        """Return the state of a replica's pods, and the end of their logs; None if a request waits for something new.

        Raises:
            InvalidInput: the request is malformed, or the replica has no pods and the request does not follow it.
        """
        name, lines = request.text(REPLICA), request.number(TAIL, LINES, MOST_LINES)
        given = request.texts(SINCE, MOST_PODS)
        since = None if given is None else {pod: parse_cursor(text) for pod, text in given.items()}
        wait_s = request.number(WAIT, 0, MOST_WAIT_S, smallest=0)
        pods = await self._api.list_pods({REPLICA_LABEL: check_name(name)})
        if not pods and since is None:
            raise InvalidInput(f"{name} has no pods now: see `reside replica describe {name}`")
        chosen = sorted(pods, key=_age)[-MOST_PODS:]
        size = SIZE // max(1, len(chosen))
        logs = await asyncio.gather(*(self._of(pod, lines, size, since) for pod in chosen))
        if since is not None and request.age_s < wait_s and not has_news(logs, since):
            return None
        return Result({REPLICA: name, PODS: len(logs)}, TypeAdapter(list[PodLog]).dump_json(logs))

    async def _of(self, found: K8sObject, lines: int, size: int, since: Mapping[str, Cursor] | None) -> PodLog:
        pod = metadata(found)["name"]
        log = await self._log(pod, lines, size, None if since is None else since.get(pod, Cursor()))
        return log.model_copy(update={"state": pod_state(found)})

    async def _log(self, pod: str, lines: int, size: int, after: Cursor | None) -> PodLog:
        """Return the end of a pod's log; only what is after a cursor, if there is one."""
        cursor = None if after is None else str(after)
        try:
            async with asyncio.timeout(READ_S):
                found = await self._api.log_end(
                    pod,
                    REPLICA_CONTAINER,
                    lines=lines,
                    size=size,
                    since=None if after is None else after.since,
                    stamped=after is not None,
                )
        except TimeoutError:
            return PodLog(
                pod=pod, error=f"its log was not read within {READ_S:.0f} s: ask for fewer lines", cursor=cursor
            )
        except ResideError as error:
            return PodLog(pod=pod, error=fault_text(error), cursor=cursor)
        return new_text(pod, found, after, lines=lines, size=size)


def _age(pod: K8sObject) -> tuple[Any, Any]:
    return metadata(pod).get("creationTimestamp", ""), metadata(pod)["name"]
