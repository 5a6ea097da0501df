"""Distributed locks in etcd; nothing else is kept there. Knows nothing of ReSide.

The idea: a lock is one key under `reside/`, written only if absent and bound to a lease that the holder keeps alive.
If the holder dies, the lease ends and the key with it. The key's create revision is the fencing token: it grows with
every new holder, so `Held.check` can ask etcd whether this very holding is still in force.

Invariants: a holder that could not renew its lease for half its time to live is told (its block is cancelled and ends
with `LockLost`), so it stops before etcd gives the lock to another; what must not be written twice is written only
after `Held.check`.
"""

from reside.locks.errors import EtcdUnavailable, LockError, LockLost, LockTimeout
from reside.locks.held import Held
from reside.locks.leadership import Leadership
from reside.locks.service import LockService

__all__ = ["EtcdUnavailable", "Held", "Leadership", "LockError", "LockLost", "LockService", "LockTimeout"]
