"""Etcd in memory: what locks use of its JSON gateway, as an HTTP transport of the real lock service.

    etcd = MemoryEtcd()
    locks = LockService(["http://etcd"], space="one", transport=etcd)

All lock services with the same `MemoryEtcd` exclude each other, as long as they run in one event loop. It passes the
contract test of a real etcd (tests/integration/locks). It accepts every user and restricts none, and keeps nothing when
the process ends.
"""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import httpx2
import orjson

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

_TARGETS: Final = {"CREATE": "create_revision", "MOD": "mod_revision", "LEASE": "lease"}


@dataclass
class _Lease:
    ttl: int
    expiry: asyncio.TimerHandle
    keys: set[bytes] = field(default_factory=set)


@dataclass(frozen=True)
class _Entry:
    value: str
    create_revision: int
    mod_revision: int
    lease: int


class _NoLease(Exception):  # noqa: N818 - named after what is wrong
    """The lease does not exist, or has expired."""


class MemoryEtcd(httpx2.AsyncBaseTransport):
    """The state of one etcd with one member."""

    def __init__(self) -> None:
        self._revision = 1
        self._entries: dict[bytes, _Entry] = {}
        self._leases: dict[int, _Lease] = {}
        self._next_lease = 1
        self._deleted: dict[bytes, int] = {}
        self._watchers: set[asyncio.Event] = set()
        self._handlers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "/v3/lease/grant": self._grant,
            "/v3/lease/keepalive": self._keep_alive,
            "/v3/lease/revoke": self._revoke,
            "/v3/lease/timetolive": self._time_to_live,
            "/v3/lease/leases": lambda _: {"leases": [{"ID": str(lease)} for lease in self._leases]},
            "/v3/kv/txn": self._txn,
            "/v3/kv/put": self._put,
            "/v3/kv/range": self._range,
            "/v3/kv/deleterange": self._delete_range,
            "/v3/auth/authenticate": lambda _: {"token": "any"},
        }

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Handle one request of the gateway; requests are handled one after the other."""
        await asyncio.sleep(0)  # as with a network, other tasks run before a response arrives
        body, path = orjson.loads(await request.aread()), request.url.path
        if path == "/v3/watch":
            return httpx2.Response(200, stream=_Lines(self._watch(body["create_request"])))
        handler = self._handlers.get(path)
        if handler is None and not path.startswith("/v3/auth/"):
            return httpx2.Response(404, json={"message": f"{path} is not served by the etcd in memory"})
        try:
            answer = {} if handler is None else handler(body)
        except _NoLease:
            return httpx2.Response(404, json={"message": "etcdserver: requested lease not found"})
        content = orjson.dumps({"header": {"revision": str(self._revision)}, **answer})
        return httpx2.Response(200, content=content, headers={"content-type": "application/json"})

    def _grant(self, body: dict[str, Any]) -> dict[str, Any]:
        lease, ttl = self._next_lease, int(body["TTL"])
        self._next_lease += 1
        self._leases[lease] = _Lease(ttl, self._expire_after(lease, ttl))
        return {"ID": str(lease), "TTL": str(ttl)}

    def _expire_after(self, lease: int, ttl: int) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(ttl, self._end, lease)

    def _keep_alive(self, body: dict[str, Any]) -> dict[str, Any]:
        lease = self._leases.get(int(body["ID"]))
        if lease is None:
            return {"result": {"ID": body["ID"]}}
        lease.expiry.cancel()
        lease.expiry = self._expire_after(int(body["ID"]), lease.ttl)
        return {"result": {"ID": body["ID"], "TTL": str(lease.ttl)}}

    def _time_to_live(self, body: dict[str, Any]) -> dict[str, Any]:
        lease = self._leases.get(int(body["ID"]))
        return {"ID": body["ID"], "TTL": "-1"} if lease is None else {"ID": body["ID"], "grantedTTL": str(lease.ttl)}

    def _revoke(self, body: dict[str, Any]) -> dict[str, Any]:
        self._end(int(body["ID"]))
        return {}

    def _end(self, number: int) -> None:
        """End a lease, which deletes its keys in one revision."""
        lease = self._lease(number)
        del self._leases[number]
        lease.expiry.cancel()
        self._delete(lease.keys)

    def _lease(self, number: int) -> _Lease:
        if number not in self._leases:
            raise _NoLease
        return self._leases[number]

    def _txn(self, body: dict[str, Any]) -> dict[str, Any]:
        succeeded = all(self._holds(compare) for compare in body.get("compare", []))
        operations = body.get("success" if succeeded else "failure", [])
        return {"succeeded": succeeded, "responses": [self._operate(operation) for operation in operations]}

    def _holds(self, compare: dict[str, Any]) -> bool:
        member = _TARGETS[compare["target"]]
        entry = self._entries.get(_decode(compare["key"]))
        return (0 if entry is None else getattr(entry, member)) == int(compare[member])

    def _operate(self, operation: dict[str, Any]) -> dict[str, Any]:
        if "requestPut" in operation:
            return {"response_put": self._put(operation["requestPut"])}
        if "requestDeleteRange" in operation:
            return {"response_delete_range": self._delete_range(operation["requestDeleteRange"])}
        return {"response_range": self._range(operation["requestRange"])}

    def _put(self, body: dict[str, Any]) -> dict[str, Any]:
        key, number = _decode(body["key"]), int(body.get("lease", 0))
        lease = self._lease(number) if number else None
        before = self._entries.get(key)
        if before is not None and before.lease:
            self._leases[before.lease].keys.discard(key)
        if lease is not None:
            lease.keys.add(key)
        self._revision += 1
        created = self._revision if before is None else before.create_revision
        self._entries[key] = _Entry(body["value"], created, self._revision, number)
        return {}

    def _range(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"kvs": [_shown(key, self._entries[key]) for key in self._keys(body)]}

    def _delete_range(self, body: dict[str, Any]) -> dict[str, Any]:
        keys = self._keys(body)
        for key in keys:
            if lease := self._entries[key].lease:
                self._leases[lease].keys.discard(key)
        self._delete(set(keys))
        return {"deleted": str(len(keys))}

    def _delete(self, keys: set[bytes]) -> None:
        if not keys:
            return
        self._revision += 1
        for key in keys:
            del self._entries[key]
            self._deleted[key] = self._revision
        for watcher in self._watchers:
            watcher.set()

    def _keys(self, body: dict[str, Any]) -> list[bytes]:
        """Return the existing keys of a request: one, those of a range, or from one to the last."""
        begin, end = _decode(body["key"]), _decode(body.get("range_end", ""))
        if not end:
            return [begin] if begin in self._entries else []
        return sorted(key for key in self._entries if key >= begin and (end == b"\0" or key < end))

    async def _watch(self, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Yield the creation of the watch, and the first deletion of its key in a revision that it includes."""
        key, since = _decode(body["key"]), int(body["start_revision"])
        deleted = asyncio.Event()
        self._watchers.add(deleted)
        try:
            yield {"created": True}
            while self._deleted.get(key, 0) < since:
                deleted.clear()
                await deleted.wait()
            yield {"events": [{"type": "DELETE", "kv": {"key": body["key"]}}]}
        finally:
            self._watchers.discard(deleted)


class _Lines(httpx2.AsyncByteStream):
    """A response that is sent line by line."""

    def __init__(self, results: AsyncIterator[dict[str, Any]]) -> None:
        self._results = results

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for result in self._results:
            yield json.dumps({"result": result}).encode() + b"\n"


def _decode(text: str) -> bytes:
    return base64.b64decode(text)


def _shown(key: bytes, entry: _Entry) -> dict[str, Any]:
    revisions = {"create_revision": str(entry.create_revision), "mod_revision": str(entry.mod_revision)}
    return {"key": base64.b64encode(key).decode(), "value": entry.value, "lease": str(entry.lease), **revisions}
