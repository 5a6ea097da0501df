"""The map in which a node records removals, written on the node's own behalf."""

from reside.jazz.ids import CoId, Json
from reside.jazz.operations.fence import unfenced_writes
from reside.jazz.values.comap import CoMap


class UnfencedNotes:
    """A map that is written without fences.

    The task that changes a group also records its removals. It may have lost its lock by then.

    Args:
        notes: the map.
    """

    def __init__(self, notes: CoMap) -> None:
        self._notes = notes

    @property
    def id(self) -> CoId:
        """The map's id."""
        return self._notes.id

    def get(self, key: str) -> Json:
        """Return the value of a key; None if there is none."""
        return self._notes.get(key)

    def set(self, key: str, value: Json) -> None:
        """Set a key."""
        with unfenced_writes():
            self._notes.set(key, value)
