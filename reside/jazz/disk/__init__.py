"""A local copy of what a node holds, so that a restart syncs only the difference."""

from .database import SqliteStore
from .keeper import Keeper

__all__ = ["Keeper", "SqliteStore"]
