"""The operations of etcd that locks and used tokens need, over its JSON gateway.

About the gateway: keys and values are base64, 64-bit integers are strings, and members with a zero value are omitted. A
transaction that only compares is serializable, so a member with stale data may execute it; a range request in it makes
it linearizable.
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reside.locks.gateway import REQUEST_TIMEOUT_S, Gateway

if TYPE_CHECKING:
    from collections.abc import Sequence

    import httpx2

    from reside.locks.gateway import UserSource

_NO_LEASE = "requested lease not found"


@dataclass(frozen=True)
class Entry:
    """The value of a key, its create and mod revision, and its lease; 0: none."""

    value: str
    create_revision: int
    mod_revision: int
    lease: int


@dataclass(frozen=True)
class Outcome:
    """Result of a transaction: whether its comparisons were true, the entry that it read, and the store's revision."""

    succeeded: bool
    entry: Entry | None
    revision: int


class Etcd:
    """A client of a set of etcd members.

    Args:
        hosts, user, transport: see `Gateway`.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        user: UserSource | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self.gateway = Gateway(hosts, user, transport)

    async def aclose(self) -> None:
        """Close all connections."""
        await self.gateway.aclose()

    async def grant(self, ttl: int) -> int:
        """Create a lease of `ttl` seconds, and return its id."""
        return int((await self.gateway.post("/v3/lease/grant", {"TTL": str(ttl)}))["ID"])

    async def keep_alive(self, lease: int, *, timeout: float) -> bool:  # noqa: ASYNC109 - httpx2's own timeout
        """Renew a lease; return False if it has expired. `timeout` is in seconds, for each member."""
        answer = await self.gateway.post("/v3/lease/keepalive", {"ID": str(lease)}, timeout)
        return int(answer.get("result", {}).get("TTL", 0)) > 0

    async def revoke(self, lease: int) -> None:
        """Revoke a lease, which deletes its keys; it is no error if the lease has expired."""
        await self.gateway.post("/v3/lease/revoke", {"ID": str(lease)}, accept=[_NO_LEASE])

    async def granted_ttl(self, lease: int) -> int:
        """Return the time to live with which a lease was created, in seconds; 0: it has expired."""
        answer = await self.gateway.post("/v3/lease/timetolive", {"ID": str(lease)}, accept=[_NO_LEASE])
        return int(answer.get("grantedTTL", 0))

    async def create(self, key: str, value: str, lease: int) -> Outcome:
        """Create `key` if it does not exist; the outcome has the entry that exists now."""
        return await self._txn(key, [_compares(key, "CREATE", "create_revision", 0)], [_put(key, value, lease)])

    async def confirm(self, key: str, create_revision: int, lease: int) -> Outcome:
        """Check with a quorum whether `key` has this create revision and this lease."""
        return await self._txn(key, _held(key, create_revision, lease), [])

    async def touch(
        self,
        key: str,
        value: str,
        create_revision: int,
        lease: int,
        *,
        timeout: float = REQUEST_TIMEOUT_S,  # noqa: ASYNC109 - httpx2's own timeout
    ) -> Outcome:
        """Write `key` again if it has this create revision and this lease, so that its mod revision changes."""
        return await self._txn(key, _held(key, create_revision, lease), [_put(key, value, lease)], timeout)

    async def delete_unchanged(self, key: str, mod_revision: int) -> None:
        """Delete `key` if it still has this mod revision."""
        compare = [_compares(key, "MOD", "mod_revision", mod_revision)]
        await self._txn(key, compare, [{"requestDeleteRange": {"key": encode(key)}}])

    async def wait_deleted(self, key: str, after: int, *, at_most: float) -> bool:
        """Wait until `key` is deleted in a revision later than `after`, for `at_most` seconds.

        Returns:
            whether a deletion was seen. If not, the key may still have been deleted: check again.
        """
        request = {"create_request": {"key": encode(key), "start_revision": str(after + 1), "filters": ["NOPUT"]}}
        try:
            async with asyncio.timeout(at_most), self.gateway.lines("/v3/watch", request) as results:
                async for result in results:
                    if result.get("events"):
                        return True
        except TimeoutError:
            pass
        return False

    async def _txn(
        self,
        key: str,
        compare: list[dict[str, Any]],
        success: list[dict[str, Any]],
        timeout: float = REQUEST_TIMEOUT_S,  # noqa: ASYNC109 - httpx2's own timeout
    ) -> Outcome:
        read = {"requestRange": {"key": encode(key)}}
        body = {"compare": compare, "success": [*success, read], "failure": [read]}
        answer = await self.gateway.post("/v3/kv/txn", body, timeout)
        found = answer["responses"][-1]["response_range"].get("kvs", [])
        entry = None
        if found:
            members = {name: int(found[0].get(name, 0)) for name in ("create_revision", "mod_revision", "lease")}
            entry = Entry(decode(found[0].get("value", "")), **members)
        return Outcome(bool(answer.get("succeeded")), entry, int(answer["header"]["revision"]))


def encode(text: str) -> str:
    """Return a key or a value as the gateway takes it."""
    return base64.b64encode(text.encode()).decode()


def decode(text: str) -> str:
    """Return a key or a value that the gateway has returned."""
    return base64.b64decode(text).decode()


def _compares(key: str, target: str, member: str, value: int) -> dict[str, Any]:
    return {"key": encode(key), "target": target, "result": "EQUAL", member: str(value)}


def _held(key: str, create_revision: int, lease: int) -> list[dict[str, Any]]:
    return [
        _compares(key, "CREATE", "create_revision", create_revision),
        _compares(key, "LEASE", "lease", lease),
    ]


def _put(key: str, value: str, lease: int) -> dict[str, Any]:
    return {"requestPut": {"key": encode(key), "value": encode(value), "lease": str(lease)}}
