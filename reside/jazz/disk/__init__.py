"""A local copy of what a node holds, so that a restart syncs only the difference."""

from reside.jazz.disk.database import SqliteStore
from reside.jazz.disk.persistence import StorePersistence

__all__ = ["SqliteStore", "StorePersistence"]
