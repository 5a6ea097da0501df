"""A sync server in process, for tests and development: `async with SyncServer() as server: ... server.url`.

It is not imported by `reside.jazz`, so that clients do not load what only a server needs.
"""

from reside.jazz.server.server import SyncServer

__all__ = ["SyncServer"]
