"""Refusing what comes after a removal, and remembering removals over restarts (docs/jazz-protocol.md, section 5)."""

from reside.jazz.removals.guard import WriteGuard, WritePolicy
from reside.jazz.removals.record import UNIQUE_NAME, RemovalRecord

__all__ = ["UNIQUE_NAME", "RemovalRecord", "WriteGuard", "WritePolicy"]
