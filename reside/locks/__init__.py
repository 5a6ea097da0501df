"""Distributed locks in etcd, and its users; it stores nothing else. Independent of the other packages of ReSide.

A lock is one key under `reside/<space>/`, which is created only if it does not exist and is bound to a lease that the
holder keeps alive. If the holder crashes, the lease expires and etcd deletes the key. The key's create revision is the
fencing token: it grows with every new holder, so `Held.check` can ask etcd whether a holder still holds the lock.

Invariants: if a holder can't renew its lease for half of its time to live, its block is cancelled and raises
`LockLost`, so it stops before etcd gives the lock to another holder; guarded writes happen only after `Held.check`.
"""

from reside.locks.errors import EtcdUnavailable, LockError, LockLost, LockTimeout, UserRefused
from reside.locks.gateway import EtcdUser, UserSource
from reside.locks.held import Held
from reside.locks.leadership import Leadership
from reside.locks.service import LEADER_PREFIX, LockService
from reside.locks.users import ROOT, Users

__all__ = [
    "LEADER_PREFIX",
    "ROOT",
    "EtcdUnavailable",
    "EtcdUser",
    "Held",
    "Leadership",
    "LockError",
    "LockLost",
    "LockService",
    "LockTimeout",
    "UserRefused",
    "UserSource",
    "Users",
]
