"""Synchronisation of a node's values with a sync server: the protocol, and the connection below it."""

from reside.jazz.sync.proof import proven_address
from reside.jazz.sync.protocol import Sync
from reside.jazz.sync.transport import Transport

__all__ = ["Sync", "Transport", "proven_address"]
