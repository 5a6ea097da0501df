"""The errors of locks, as a tree.

    LockError
    ├── EtcdUnavailable  no etcd member responds, or none has a leader
    │   └── UserRefused  etcd does not know the user, or its password
    ├── LockTimeout      another holder held the lock for longer than the caller waited
    └── LockLost         the lock is no longer held: guarded writes must not happen

All of them are transient: a later attempt to take the lock may succeed.
"""
# ruff: noqa: N818 - named after what happened, as in httpx

from __future__ import annotations

from typing import ClassVar


class LockError(Exception):
    """Base class of all errors of this package.

    Attributes:
        transient: whether another attempt may succeed without a change; see `reside.common.transience`.
    """

    transient: ClassVar[bool] = True


class EtcdUnavailable(LockError):
    """No etcd member gave a valid response."""


class UserRefused(EtcdUnavailable):
    """Etcd does not know the user, or it has another password. Alpha adds the users, so this may change.

    Attributes:
        user: name of the user.
    """

    def __init__(self, user: str) -> None:
        super().__init__(
            f"etcd refuses user {user}: Alpha has not added it yet, or the account of Alpha was replaced; "
            "in this case delete the volume of etcd, which has nothing but locks"
        )
        self.user = user


class LockTimeout(LockError):
    """The lock was not released in time.

    Attributes:
        key: the lock's key in etcd.
        holder: the name of the last holder; empty if it is unknown.
    """

    def __init__(self, key: str, holder: str) -> None:
        super().__init__(f"lock {key} is held by {holder or 'an unknown holder'}: try again when it is released")
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
