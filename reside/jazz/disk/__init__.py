"""The local store of a node on disk, so that a restart synchronises only the difference.

`SqliteStore` is in `database`, which imports SQLite: a node without a store does not import it.
"""

from reside.jazz.disk.persistence import StorePersistence
from reside.jazz.disk.restoring import RestoringInParts

__all__ = ["RestoringInParts", "StorePersistence"]
