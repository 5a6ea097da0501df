"""What tests of replicas need in one process: locks in memory."""

from reside.testing.locks import MemoryEtcd

__all__ = ["MemoryEtcd"]
