"""Call a method of another replica over HTTP (docs/model.md, section 10).

A call that its receiver has not handled is retried until a deadline: no connection was made, or the receiver says so
(`refusals`). Each attempt has a request token of its own, since a token is valid for one request and for one process of
the receiver, which is unknown before the first call: then the receiver names it in its refusal, with its agent, so that
the next tokens need no signature. A call that may have been handled is not retried: the response was lost, a handler
failed, or a proxy responded. Only the caller knows whether such a call may be repeated.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import httpx2
import stamina

from reside.common import tracing
from reside.common.traceparent import TRACEPARENT
from reside.jazz import can_share, now_ms, sign_request
from reside.model.endpoints import INSTANCE_HEADER, signed_path
from reside.model.errors import AnswerLost, NotReady, ResideError, from_wire
from reside.replica.refusals import NotServing, OtherInstance

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.jazz import AccountId, Credentials, Json

TIMEOUT = httpx2.Timeout(60.0, connect=5.0)
"""Seconds. Longer than the time to live of a lock, since a call may wait for the lock of a crashed process."""
RETRY_WITHIN_S = 30.0
"""Seconds for which a call is retried. Shorter than the time for which a caller waits for a response, since a replica
may make this call while it handles another one."""
_LONGEST_PAUSE_S = 2.0
_INSTANCES: Final = 32
"""Processes of a receiver that one attempt tries to reach. Connections of one client mostly reach the same one."""
_INSTANCE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


@dataclass(frozen=True)
class Process:
    """The process of a receiver that a call has reached.

    Attributes:
        instance: its id; empty: unknown.
        agent_id: the agent of the receiver's account; None: unknown, so that tokens are signed.
    """

    instance: str = ""
    agent_id: str | None = None


async def call_method(
    http: httpx2.AsyncClient,
    credentials: Credentials,
    *,
    endpoint: str,
    receiver: AccountId,
    path: str,
    body: dict[str, Any],
    within_s: float = RETRY_WITHIN_S,
    processes: dict[AccountId, Process] | None = None,
    waiting: Callable[[str], None] | None = None,
) -> Json:
    """Call one method.

    Args:
        http: the client to use.
        credentials: credentials of the caller, whose account signs.
        endpoint: base address of the receiver.
        receiver: account id of the receiver, to which the token is bound.
        path: see `reside.model.endpoints.rpc_path`.
        body: the JSON object to send.
        within_s: seconds after which a call that was not handled is no longer retried.
        processes: account of a receiver → the process that the last call has reached, which is updated. None saves
            nothing, and costs a request more.
        waiting: called with the reason after each attempt that was not handled.

    Raises:
        AnswerLost: the call was sent, but no response arrived: it may have been handled.
        NotReady: the receiver can't be reached, or is not ready.
        ResideError: the error that the receiver returned, as the class of its code.
    """
    content = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
    request = _Request(http, credentials, endpoint, receiver, path, content, {} if processes is None else processes)
    tries = stamina.retry_context(
        on=(*_NOT_SENT, NotServing), attempts=None, timeout=within_s, wait_max=_LONGEST_PAUSE_S, wait_jitter=0.5
    )
    try:
        with tracing.span(f"call {path.rpartition('/')[2]}", "client", attributes={"url.path": path}):
            async for attempt in tries:
                with attempt:
                    try:
                        answer = await request.send()
                    except (*_NOT_SENT, NotServing) as error:
                        if waiting is not None:
                            waiting(_why_not_handled(endpoint, error))
                        raise
    except NotServing as error:
        raise NotReady(
            str(error)
        ) from None  # not NotServing: the call during which this one was made has been handled in part
    except _NOT_SENT as error:
        raise NotReady(_why_not_handled(endpoint, error)) from error
    except httpx2.TransportError as error:
        raise AnswerLost(
            f"{endpoint} did not respond: {_described(error)}; the call may have been carried out"
        ) from error
    return answer


@dataclass(frozen=True)
class _Request:
    """A call that can be sent any number of times."""

    http: httpx2.AsyncClient
    credentials: Credentials = field(repr=False)
    endpoint: str
    receiver: AccountId
    path: str
    content: bytes
    processes: dict[AccountId, Process]

    async def send(self) -> Json:
        """Send the call to the process that receives it, and return the response."""
        for _ in range(_INSTANCES):
            process = self.processes.get(self.receiver, Process())
            response = await self._post(process)
            if response.status_code == httpx2.codes.UNAUTHORIZED and process.agent_id is not None:
                # Not handled. An older receiver knows no codes, but somebody on the way has named its agent.
                self.processes[self.receiver] = Process(process.instance)
                continue
            try:
                return _parse_response(self.endpoint, response)
            except OtherInstance as error:
                self.processes[self.receiver] = self._process(error)
        raise NotServing(f"{self.endpoint} is served by another process at each attempt: use fewer pods")

    def _process(self, refusal: OtherInstance) -> Process:
        agent_id = refusal.agent_id
        if agent_id is not None and not can_share(self.credentials, agent_id, self.receiver):
            agent_id = None
        return Process(refusal.instance, agent_id)

    async def _post(self, process: Process) -> httpx2.Response:
        token = sign_request(
            self.credentials,
            receiver=self.receiver,
            method="POST",
            path=signed_path(self.path, process.instance),
            body=self.content,
            now_ms=now_ms(),
            receiver_agent_id=process.agent_id,
        )
        headers = {"authorization": token, "content-type": "application/json", INSTANCE_HEADER: process.instance}
        if (traceparent := tracing.current()) is not None:
            headers[TRACEPARENT] = traceparent
        url = f"{self.endpoint.rstrip('/')}{self.path}"
        return await self.http.post(url, content=self.content, headers=headers, timeout=TIMEOUT)


def _why_not_handled(endpoint: str, error: Exception) -> str:
    if isinstance(error, httpx2.TransportError):
        return f"{endpoint} can't be reached: {_described(error)}"
    return str(error)


def _described(error: httpx2.TransportError) -> str:
    return f"{type(error).__name__} {error}".rstrip()


def _parse_response(endpoint: str, response: httpx2.Response) -> Json:
    try:
        data = response.json()
    except ValueError:
        if response.is_success:
            raise ResideError(
                f"{endpoint} responded with HTTP {response.status_code}, but without JSON: is it a replica?"
            ) from None
        data = None
    if response.is_success:
        return data
    error = data.get("error") if isinstance(data, dict) else None
    if isinstance(error, dict):
        code, message = str(error.get("code")), str(error.get("message"))
        if response.status_code == httpx2.codes.SERVICE_UNAVAILABLE and code == NotServing.code:
            raise NotServing(message)
        instance = data.get("instance")
        if response.status_code == httpx2.codes.MISDIRECTED_REQUEST and code == OtherInstance.code:
            if isinstance(instance, str) and _INSTANCE.fullmatch(instance):
                agent_id = data.get("agent")
                raise OtherInstance(message, instance, agent_id if isinstance(agent_id, str) else None)
            raise ResideError(f"{endpoint} does not name its process: is it a replica?")
        raise from_wire(code, message)
    if response.status_code in (
        httpx2.codes.BAD_GATEWAY,
        httpx2.codes.SERVICE_UNAVAILABLE,
        httpx2.codes.GATEWAY_TIMEOUT,
    ):
        raise NotReady(f"{endpoint} is not ready: HTTP {response.status_code}")
    raise ResideError(
        f"{endpoint} responded with HTTP {response.status_code}, but without a ReSide error: is it a replica?"
    )
