"""Refusal of writes after a removal, also across restarts (docs/jazz.md, Validation and its limits)."""

from reside.jazz.removals.guard import WriteGuard, WritePolicy
from reside.jazz.removals.record import UNIQUE_NAME, RemovalRecord

__all__ = ["UNIQUE_NAME", "RemovalRecord", "WriteGuard", "WritePolicy"]
