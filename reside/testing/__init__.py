"""Test replicas in one process, without Kubernetes and etcd (docs/testing.md).

    async with cluster() as test:
        greeter, caller = await test.add(greeter_code, "greeter"), await test.user()
        async with greeter.running():
            await test.grant(caller, greeter, "greet")
            assert await caller.call(greeter, "greet", {"name": "Ada"}) == {"message": "Hello, Ada", "version": 1}

The replicas, the sync server and all checks of permissions are the real ones. Locks are those of the real lock service
on an etcd in memory, unless a real one is named.
"""

from reside.testing.alpha import Identity, SmallAlpha, small_alpha
from reside.testing.cluster import Cluster, Instance, User, cluster
from reside.testing.locks import MemoryEtcd

__all__ = ["Cluster", "Identity", "Instance", "MemoryEtcd", "SmallAlpha", "User", "cluster", "small_alpha"]
