"""Keeping a node's values and those of a sync server alike: the protocol, and the connection under it."""

from reside.jazz.sync.protocol import Sync
from reside.jazz.sync.transport import Transport

__all__ = ["Sync", "Transport"]
