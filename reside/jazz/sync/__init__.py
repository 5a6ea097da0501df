"""Keeping a node's values and those of a sync server alike: the protocol, and the connection under it."""

from .machine import Sync
from .transport import Transport

__all__ = ["Sync", "Transport"]
