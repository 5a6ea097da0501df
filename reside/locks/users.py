"""The users of etcd: each may touch only the keys below its own prefix.

The user `root` may do everything; it belongs to whoever manages the others. An etcd without authentication, because it
is new or has lost its data, gets it from `Users.secure`. What strangers created before that is deleted: keys, users and
roles. A key that only `root` can write marks that this is complete, so an interrupted run is continued by the next one.

The functions are idempotent: what exists already is not an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog

from reside.locks.errors import UserRefused
from reside.locks.etcd import decode, encode
from reside.locks.service import PREFIX

if TYPE_CHECKING:
    from reside.locks.etcd import Etcd
    from reside.locks.gateway import EtcdUser

_log = structlog.get_logger(__name__)

ROOT: Final = "root"
"""Name of the user and of the role that etcd requires before it enables authentication."""
_SECURED: Final = "secured"
_USERS: Final = "users/"
_EXISTS: Final = "already exists"
_MISSING: Final = "not found"


class Users:
    """The users of one etcd.

    Args:
        etcd: a client that logs in as `root`.
        root: this user.
    """

    def __init__(self, etcd: Etcd, root: EtcdUser) -> None:
        if root.name != ROOT:
            raise ValueError(f"users are managed by {ROOT}, not by {root.name}")
        self._post = etcd.gateway.post
        self._gateway = etcd.gateway
        self._root = root

    async def secure(self) -> bool:
        """Enable authentication unless it is enabled; return whether anything was to be done.

        Raises:
            EtcdUnavailable: no member gave a valid response.
            UserRefused: somebody else has enabled it.
        """
        if await self._gateway.log_in(self._root):
            if await self._read(_SECURED):
                return False
        else:
            await self._enable()
            if not await self._gateway.log_in(self._root):
                raise UserRefused(ROOT)
        await self._delete_what_strangers_made()
        await self._put(_SECURED, "1")
        _log.info("etcd asks for users now; what was in it before is deleted")
        return True

    async def names(self) -> frozenset[str]:
        """Return the names of the users that `add` has completed, without `root`."""
        found = await self._read(_USERS, prefix=True)
        return frozenset(key.removeprefix(PREFIX + _USERS) for key in found)

    async def add(self, user: EtcdUser) -> None:
        """Add a user with a role for the keys below its prefix (`LockService`)."""
        name = user.name
        added = await self._post("/v3/auth/user/add", {"name": name, "password": user.password}, accept=[_EXISTS])
        if not added:
            await self._post("/v3/auth/user/changepw", {"name": name, "password": user.password})
        await self._post("/v3/auth/role/add", {"name": name}, accept=[_EXISTS])
        begin, end = _range(f"{name}/")
        allowed = {"permType": "READWRITE", "key": begin, "range_end": end}
        await self._post("/v3/auth/role/grant", {"name": name, "perm": allowed})
        await self._post("/v3/auth/user/grant", {"user": name, "role": name})
        await self._put(_USERS + name, "1")

    async def remove(self, name: str) -> None:
        """Remove a user, its role and its keys."""
        await self._post("/v3/auth/user/delete", {"name": name}, accept=[_MISSING])
        await self._post("/v3/auth/role/delete", {"role": name}, accept=[_MISSING])
        await self._delete(f"{name}/", prefix=True)
        await self._delete(_USERS + name)

    async def _enable(self) -> None:
        root = self._root
        if not await self._post("/v3/auth/user/add", {"name": ROOT, "password": root.password}, accept=[_EXISTS]):
            await self._post("/v3/auth/user/changepw", {"name": ROOT, "password": root.password})
        await self._post("/v3/auth/role/add", {"name": ROOT}, accept=[_EXISTS])
        await self._post("/v3/auth/user/grant", {"user": ROOT, "role": ROOT})
        await self._post("/v3/auth/enable", {})

    async def _delete_what_strangers_made(self) -> None:
        users = (await self._post("/v3/auth/user/list", {})).get("users", [])
        roles = (await self._post("/v3/auth/role/list", {})).get("roles", [])
        for user in set(users) - {ROOT}:
            await self._post("/v3/auth/user/delete", {"name": user}, accept=[_MISSING])
        for role in set(roles) - {ROOT}:
            await self._post("/v3/auth/role/delete", {"role": role}, accept=[_MISSING])
        everything = encode("\0")  # as the key and as its end: all keys
        await self._post("/v3/kv/deleterange", {"key": everything, "range_end": everything})

    async def _put(self, key: str, value: str) -> None:
        await self._post("/v3/kv/put", {"key": encode(PREFIX + key), "value": encode(value)})

    async def _read(self, key: str, *, prefix: bool = False) -> list[str]:
        """Return the keys that exist."""
        begin, end = _range(key)
        asked: dict[str, Any] = {"key": begin, "keys_only": True} | ({"range_end": end} if prefix else {})
        return [decode(entry["key"]) for entry in (await self._post("/v3/kv/range", asked)).get("kvs", [])]

    async def _delete(self, key: str, *, prefix: bool = False) -> None:
        begin, end = _range(key)
        await self._post("/v3/kv/deleterange", {"key": begin} | ({"range_end": end} if prefix else {}))


def _range(key: str) -> tuple[str, str]:
    """Return the bounds of all keys that begin with `key`, below the prefix of all locks."""
    full = PREFIX + key
    return encode(full), encode(full[:-1] + chr(ord(full[-1]) + 1))
