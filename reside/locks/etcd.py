"""A client of etcd's JSON gateway (`/v3`), as far as locks need it.

It uses httpx2 and not etcd3gw, because etcd3gw is synchronous: every waiter and every watch would need a thread that
can't be cancelled. It also supports one host only.

About the gateway: keys and values are base64, 64-bit integers are strings, and members with a zero value are omitted. A
transaction that only compares is serializable, so a member with stale data may execute it; a range request in it makes
it linearizable.
"""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2

from reside.common.tls import trusted_authorities
from reside.locks.errors import EtcdUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

_REQUEST_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class Entry:
    """The value of a key, its create revision, and its lease; 0: none."""

    value: str
    create_revision: int
    lease: int


@dataclass(frozen=True)
class Outcome:
    """Result of a transaction: whether its comparisons were true, the entry that it read, and the store's revision."""

    succeeded: bool
    entry: Entry | None
    revision: int


class Etcd:
    """A client of a set of etcd members. If a member does not respond or has no leader, the next one is used.

    Args:
        hosts: addresses of the members, e.g. `http://etcd:2379`.
        transport: HTTP transport; None: the network.
    """

    def __init__(self, hosts: Sequence[str], transport: httpx2.AsyncBaseTransport | None = None) -> None:
        if not hosts:
            raise ValueError("no etcd host is given: pass at least one, e.g. http://etcd:2379")
        self._hosts = [host.rstrip("/") for host in hosts]
        self._client = httpx2.AsyncClient(
            timeout=_REQUEST_TIMEOUT_S, transport=transport, verify=trusted_authorities(), trust_env=False
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def grant(self, ttl: int) -> int:
        """Create a lease of `ttl` seconds, and return its id."""
        return int((await self._post("/v3/lease/grant", {"TTL": str(ttl)}))["ID"])

    async def keep_alive(self, lease: int, *, timeout: float) -> bool:  # noqa: ASYNC109 - httpx2's own timeout
        """Renew a lease; return False if it has expired. `timeout` is in seconds, for each member."""
        answer = await self._post("/v3/lease/keepalive", {"ID": str(lease)}, timeout)
        return int(answer.get("result", {}).get("TTL", 0)) > 0

    async def revoke(self, lease: int) -> None:
        """Revoke a lease, which deletes its keys; it is no error if the lease has expired."""
        await self._post("/v3/lease/revoke", {"ID": str(lease)}, allow_missing=True)

    async def create(self, key: str, value: str, lease: int) -> Outcome:
        """Create `key` if it does not exist; the outcome has the entry that exists now."""
        compare = {"key": _encode(key), "target": "CREATE", "result": "EQUAL", "create_revision": "0"}
        put = {"requestPut": {"key": _encode(key), "value": _encode(value), "lease": str(lease)}}
        return await self._txn(key, [compare], [put])

    async def confirm(self, key: str, create_revision: int, lease: int) -> Outcome:
        """Check with a quorum whether `key` has this create revision and this lease."""
        return await self._txn(
            key,
            [
                {"key": _encode(key), "target": "CREATE", "result": "EQUAL", "create_revision": str(create_revision)},
                {"key": _encode(key), "target": "LEASE", "result": "EQUAL", "lease": str(lease)},
            ],
            [],
        )

    async def wait_deleted(self, key: str, after: int, *, at_most: float) -> bool:
        """Wait until `key` is deleted in a revision later than `after`, for `at_most` seconds.

        Returns:
            whether a deletion was seen. If not, the key may still have been deleted: check again.
        """
        request = {"create_request": {"key": _encode(key), "start_revision": str(after + 1), "filters": ["NOPUT"]}}
        try:
            async with asyncio.timeout(at_most):
                return await self._first_event(request)
        except TimeoutError:
            return False

    async def _first_event(self, request: dict[str, Any]) -> bool:
        host = self._hosts[0]
        try:
            async with self._client.stream(
                "POST", f"{host}/v3/watch", json=request, timeout=httpx2.Timeout(_REQUEST_TIMEOUT_S, read=None)
            ) as response:
                _check(response.status_code, "/v3/watch", "")
                async for line in response.aiter_lines():
                    if line.strip() and _parse(line, "/v3/watch").get("result", {}).get("events"):
                        return True
        except httpx2.TransportError as error:
            raise self._unavailable(host, error) from error
        return False

    async def _txn(self, key: str, compare: list[dict[str, Any]], success: list[dict[str, Any]]) -> Outcome:
        read = {"requestRange": {"key": _encode(key)}}
        answer = await self._post("/v3/kv/txn", {"compare": compare, "success": [*success, read], "failure": [read]})
        found = answer["responses"][-1]["response_range"].get("kvs", [])
        entry = None
        if found:
            value = base64.b64decode(found[0].get("value", "")).decode()
            entry = Entry(value, int(found[0]["create_revision"]), int(found[0].get("lease", 0)))
        return Outcome(bool(answer.get("succeeded")), entry, int(answer["header"]["revision"]))

    async def _post(
        self,
        path: str,
        body: dict[str, Any],
        timeout: float = _REQUEST_TIMEOUT_S,  # noqa: ASYNC109 - httpx2's own timeout
        *,
        allow_missing: bool = False,
    ) -> dict[str, Any]:
        for _ in range(len(self._hosts)):
            host = self._hosts[0]
            try:
                response = await self._client.post(f"{host}{path}", json=body, timeout=timeout)
            except httpx2.TransportError as error:
                failure = self._unavailable(host, error)
                continue
            if response.is_server_error:
                self._pass_over(host)
                failure = _refused(response.status_code, path, response.text)
                continue
            if allow_missing and response.status_code == httpx2.codes.NOT_FOUND:
                return {}
            _check(response.status_code, path, response.text)
            return _parse(response.text, path)
        raise failure

    def _pass_over(self, host: str) -> None:
        """Start the next request with another member."""
        self._hosts = [*self._hosts[1:], host]

    def _unavailable(self, host: str, error: httpx2.TransportError) -> EtcdUnavailable:
        self._pass_over(host)
        return EtcdUnavailable(f"etcd at {host} does not respond: {type(error).__name__} {error}".rstrip())


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _parse(text: str, path: str) -> dict[str, Any]:
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise EtcdUnavailable(f"the response to {path} is not from etcd: {text[:200]}")
    return answer


def _check(status: int, path: str, text: str) -> None:
    if status != httpx2.codes.OK:
        raise _refused(status, path, text)


def _refused(status: int, path: str, text: str) -> EtcdUnavailable:
    return EtcdUnavailable(f"etcd refused {path} with HTTP {status}: {text[:200]}")
