"""What can go wrong with a lock.

The tree::

    LockError
    ├── EtcdUnavailable  no etcd answers, or the one that does has no leader; come back later
    ├── LockTimeout      somebody else held the lock for longer than the caller was willing to wait
    └── LockLost         the lock was held and is no longer: whatever it guards must not be written any more

All of them are transient: a later attempt that takes the lock again may succeed.
"""
# ruff: noqa: N818 - names say what happened, as in httpx; the common base says that they are errors

from __future__ import annotations

from typing import ClassVar


class LockError(Exception):
    """The base of all errors of this package.

    Attributes:
        transient: whether another attempt may succeed although nobody acts; see `reside.common.transience`.
    """

    transient: ClassVar[bool] = True


class EtcdUnavailable(LockError):
    """No etcd gave a usable answer."""


class LockTimeout(LockError):
    """The lock was not free in time.

    Attributes:
        key: the lock's key in etcd.
        holder: who held it at the end, as it called itself; empty when unknown.
    """

    def __init__(self, key: str, holder: str) -> None:
        super().__init__(f"lock {key} is held by {holder or 'somebody unknown'}: try again when it is released")
        self.key = key
        self.holder = holder


class LockLost(LockError):
    """The lock is no longer held by this holder.

    Attributes:
        key: the lock's key in etcd.
    """

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"lock {key} is lost: {why}")
        self.key = key
