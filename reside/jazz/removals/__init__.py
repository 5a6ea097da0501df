"""Refusing what comes after a removal, and remembering removals over restarts (jazz-protocol.md §5)."""

from .guard import WriteGuard, WritePolicy
from .memory import UNIQUE_NAME, RemovalMemory

__all__ = ["UNIQUE_NAME", "RemovalMemory", "WriteGuard", "WritePolicy"]
