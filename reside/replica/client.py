"""Calls a method of another replica over HTTP (docs/architecture.md, "RPC").

A request token is good for one request, so every try signs anew. Only connections that could not be made are tried
again: a call that may have reached its receiver is the caller's to repeat.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import stamina

from reside.jazz import now_ms, sign_request
from reside.model.errors import NotReady, ResideError, from_wire

if TYPE_CHECKING:
    from reside.jazz import AccountId, Credentials, Json

TIMEOUT = httpx.Timeout(60.0, connect=5.0)
"""Seconds; longer than a dead holder's lock lives, since a call may wait for one."""
_ATTEMPTS = 4
_WITHIN_S = 15.0


def rpc_path(replica: str, contract: str, method: str) -> str:
    """Path of a method of a replica instance."""
    return f"/replicas/{replica}/rpc/{contract}/{method}"


async def call_method(
    http: httpx.AsyncClient,
    credentials: Credentials,
    *,
    endpoint: str,
    receiver: AccountId,
    path: str,
    body: dict[str, Any],
) -> Json:
    """Call one method.

    Args:
        http: the client to use.
        credentials: the caller's; its account signs.
        endpoint: base address of the receiver.
        receiver: account id of the receiver, to which the token is bound.
        path: see ``rpc_path``.
        body: the JSON object to send.

    Raises:
        NotReady: the receiver can't be reached, or says that it isn't ready.
        ResideError: what the receiver answered, as the class its code names.
    """
    content = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
    try:
        async for attempt in stamina.retry_context(
            on=(httpx.ConnectError, httpx.ConnectTimeout), attempts=_ATTEMPTS, timeout=_WITHIN_S
        ):
            with attempt:
                token = sign_request(
                    credentials, receiver=receiver, method="POST", path=path, body=content, now_ms=now_ms()
                )
                headers = {"authorization": token, "content-type": "application/json"}
                response = await http.post(
                    f"{endpoint.rstrip('/')}{path}", content=content, headers=headers, timeout=TIMEOUT
                )
    except httpx.TransportError as error:
        raise NotReady(f"{endpoint} can't be reached: {type(error).__name__} {error}".rstrip()) from error
    return _answer(endpoint, response)


def _answer(endpoint: str, response: httpx.Response) -> Json:
    try:
        data = response.json()
    except ValueError:
        if response.is_success:
            raise ResideError(
                f"{endpoint} answered HTTP {response.status_code} with no JSON: is it a replica?"
            ) from None
        data = None
    if response.is_success:
        return data
    error = data.get("error") if isinstance(data, dict) else None
    if isinstance(error, dict):
        raise from_wire(str(error.get("code")), str(error.get("message")))
    if response.status_code in (httpx.codes.BAD_GATEWAY, httpx.codes.SERVICE_UNAVAILABLE, httpx.codes.GATEWAY_TIMEOUT):
        raise NotReady(f"{endpoint} is not ready: HTTP {response.status_code}")
    raise ResideError(f"{endpoint} answered HTTP {response.status_code} without an error of ReSide")
