"""Synchronisation of a node's values with its sync servers: the protocol, and the connections below it."""

from reside.jazz.sync.exchange import Exchange
from reside.jazz.sync.proof import proven_address
from reside.jazz.sync.servers import Servers

__all__ = ["Exchange", "Servers", "proven_address"]
