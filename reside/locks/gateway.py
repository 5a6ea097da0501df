"""Requests to etcd's JSON gateway (`/v3`): the next member if one fails, and a login if etcd asks for one.

It does not use etcd3gw, because etcd3gw is synchronous: every waiter and every watch would need a thread that can't be
cancelled. It also supports one host only. Watches use httpx2, which reads streams; all other requests use
`reside.locks.connections`, which needs less CPU.

A login is a token that etcd keeps in memory: it is gone after a restart of etcd, after five minutes without use, and
after a change of the user. So a request whose token is refused is repeated once with a new one. An etcd without
authentication ignores tokens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import httpx2
import orjson

from reside.common.tls import trusted_authorities
from reside.locks.connections import Connections
from reside.locks.errors import EtcdUnavailable, UserRefused
from reside.locks.exchange import Answer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

REQUEST_TIMEOUT_S: Final = 5.0
_ATTEMPTS: Final = 4
"""Attempts of one request: the first, one after a login, and two while users are being changed."""
_NOT_LOGGED_IN: Final = ("user name is empty", "invalid auth token")
_CHANGED_MEANWHILE: Final = "revision of auth store is old"
_LOGIN_FAILED: Final = "invalid user ID or password"
NOT_ENABLED: Final = "authentication is not enabled"


@dataclass(frozen=True)
class EtcdUser:
    """The name and the password of a user of etcd."""

    name: str
    password: str = field(repr=False)


UserSource = Callable[[], Awaitable[EtcdUser | None]]
"""Finds the user to log in as; returns None while it is unknown."""


class Gateway:
    """A client of a set of etcd members. If a member does not respond or has no leader, the next one is used.

    Args:
        hosts: addresses of the members, e.g. `http://etcd:2379`.
        user: finds the user to log in as; it is called for each login. None: there is none.
        transport: HTTP transport of all requests; None: the network.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        user: UserSource | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        if not hosts:
            raise ValueError("no etcd host is given: pass at least one, e.g. http://etcd:2379")
        self._hosts = [host.rstrip("/") for host in hosts]
        self._user = user
        self._token: str | None = None
        self._logging_in = asyncio.Lock()
        self._client = httpx2.AsyncClient(
            timeout=REQUEST_TIMEOUT_S, transport=transport, verify=trusted_authorities(), trust_env=False
        )
        self._transport = transport
        self._connections = Connections()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._connections.aclose()
        await self._client.aclose()

    async def post(
        self,
        path: str,
        body: dict[str, Any],
        timeout: float = REQUEST_TIMEOUT_S,  # noqa: ASYNC109 - httpx2's own timeout
        *,
        accept: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Send a request, and return the response.

        Args:
            path: for example `/v3/kv/txn`.
            body: the JSON object to send.
            timeout: seconds, for each member.
            accept: parts of error messages that are no error here; the response is then empty.

        Raises:
            EtcdUnavailable: no member gave a valid response.
            UserRefused: etcd asks for a login, and refuses this user.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            token = self._token
            answer = await self._send(path, body, timeout, token)
            if answer.status == httpx2.codes.OK:
                return _parse(answer.text, path)
            reason = _reason(answer)
            if any(text in reason for text in accept):
                return {}
            if attempt < _ATTEMPTS and any(text in reason for text in _NOT_LOGGED_IN):
                await self._log_in(token)
            elif attempt == _ATTEMPTS or _CHANGED_MEANWHILE not in reason:
                break
        raise _refused(answer.status, path, reason)

    @asynccontextmanager
    async def lines(self, path: str, body: dict[str, Any]) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """Send a request whose response is a stream, and yield the stream's results."""
        host = self._hosts[0]
        timeout = httpx2.Timeout(REQUEST_TIMEOUT_S, read=None)
        try:
            async with self._client.stream(
                "POST", f"{host}{path}", json=body, timeout=timeout, headers=_headers(self._token)
            ) as response:
                if response.status_code != httpx2.codes.OK:
                    raise _refused(response.status_code, path, "")
                yield _results(response, path)
        except httpx2.TransportError as error:
            raise self._unavailable(host, error) from error

    async def log_in(self, user: EtcdUser) -> bool:
        """Log in as a user, and use its token from now on; return False if etcd has no authentication.

        Raises:
            EtcdUnavailable: no member gave a valid response.
            UserRefused: etcd does not know the user, or it has another password.
        """
        body = {"name": user.name, "password": user.password}
        answer = await self._send("/v3/auth/authenticate", body, REQUEST_TIMEOUT_S, None)
        if answer.status == httpx2.codes.OK:
            self._token = str(_parse(answer.text, "/v3/auth/authenticate").get("token"))
            return True
        reason = _reason(answer)
        if NOT_ENABLED in reason:
            return False
        if _LOGIN_FAILED in reason:
            raise UserRefused(user.name)
        raise _refused(answer.status, "/v3/auth/authenticate", reason)

    async def _log_in(self, refused: str | None) -> None:
        """Replace a token that was refused, unless another request has replaced it meanwhile."""
        async with self._logging_in:
            if self._token != refused:
                return
            user = None if self._user is None else await self._user()
            if user is None:
                raise EtcdUnavailable("etcd asks for a user, and this process has none yet")
            await self.log_in(user)

    async def _send(self, path: str, body: dict[str, Any], within_s: float, token: str | None) -> Answer:
        """Return the answer of the first member that works."""
        text = orjson.dumps(body)
        for _ in range(len(self._hosts)):
            host = self._hosts[0]
            try:
                answer = await self._send_to(host, path, text, within_s, token)
            except (OSError, httpx2.TransportError) as error:
                failure = self._unavailable(host, error)
                continue
            if not httpx2.codes.is_server_error(answer.status):
                return answer
            self._pass_over(host)
            failure = _refused(answer.status, path, answer.text)
        raise failure

    async def _send_to(self, host: str, path: str, text: bytes, within_s: float, token: str | None) -> Answer:
        if self._transport is None:
            return await self._connections.post(host, path, text, token=token, timeout=within_s)
        return await _ask(self._transport, _url(f"{host}{path}"), text, within_s, token)

    def _pass_over(self, host: str) -> None:
        """Start the next request with another member."""
        self._hosts = [*self._hosts[1:], host]

    def _unavailable(self, host: str, error: Exception) -> EtcdUnavailable:
        self._pass_over(host)
        return EtcdUnavailable(f"etcd at {host} does not respond: {type(error).__name__} {error}".rstrip())


async def _ask(
    transport: httpx2.AsyncBaseTransport, url: httpx2.URL, text: bytes, within_s: float, token: str | None
) -> Answer:
    """Send a request without what a client adds, such as cookies and redirects, which takes longer than a lock."""
    headers = {"content-type": "application/json", **_headers(token)}
    extensions = {"timeout": httpx2.Timeout(within_s).as_dict()}
    request = httpx2.Request("POST", url, content=text, headers=headers, extensions=extensions)
    response = await transport.handle_async_request(request)
    return Answer(response.status_code, (await response.aread()).decode(errors="replace"))


@lru_cache(maxsize=64)
def _url(text: str) -> httpx2.URL:
    return httpx2.URL(text)


def _headers(token: str | None) -> dict[str, str]:
    return {} if token is None else {"authorization": token}


async def _results(response: httpx2.Response, path: str) -> AsyncIterator[dict[str, Any]]:
    async for line in response.aiter_lines():
        if line.strip():
            result = _parse(line, path).get("result", {})
            if result.get("canceled"):
                raise EtcdUnavailable(f"etcd ended {path}: {result.get('cancel_reason', 'no reason given')}")
            yield result


def _reason(answer: Answer) -> str:
    """Return etcd's error message, or the text if the answer is not from etcd."""
    try:
        found = orjson.loads(answer.text)
    except ValueError:
        found = None
    return str(found.get("message", found)) if isinstance(found, dict) else answer.text


def _parse(text: str, path: str) -> dict[str, Any]:
    try:
        found = orjson.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise EtcdUnavailable(f"the response to {path} is not from etcd: {text[:200]}")
    return found


def _refused(status: int, path: str, reason: str) -> EtcdUnavailable:
    return EtcdUnavailable(f"etcd refused {path} with HTTP {status}: {reason[:200]}")
