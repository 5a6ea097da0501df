"""The local store of a node on disk, so that a restart synchronises only the difference."""

from reside.jazz.disk.database import SqliteStore
from reside.jazz.disk.persistence import StorePersistence

__all__ = ["SqliteStore", "StorePersistence"]
