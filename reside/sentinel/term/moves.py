"""Objects that move from one stack to another one of the same owner: the first forgets them, the second adopts them.

Otherwise the first would delete them, with their data, and the second recreate them. The owner declares an object in
its new stack before it removes it from the old one. So a stack deletes objects only after every entry of its owner was
read once in this term, and it looks at what these stacks declare at that moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reside.model.errors import NotReady
from reside.model.stacks import OBJECTS

if TYPE_CHECKING:
    from collections.abc import Collection

    from reside.jazz import CoMap
    from reside.sentinel.term.context import TermContext


class Moves:
    """Knows in which stacks objects are declared, during one term."""

    def __init__(self, context: TermContext) -> None:
        self._context = context
        self._examined: set[str] = set()
        self._sources: dict[str, CoMap] = {}
        self._declared: dict[str, tuple[Any, frozenset[str]]] = {}
        """Stack → the objects in its map, when they were looked at last, and their keys."""

    def examined(self, stack: str) -> None:
        """Note that an attempt to read a stack has ended."""
        self._examined.add(stack)

    def read(self, stack: str, source: CoMap) -> None:
        """Note the map of a stack."""
        self._sources[stack] = source
        self._examined.add(stack)

    def forget(self, stack: str) -> None:
        """Note that a stack was removed."""
        self._sources.pop(stack, None)
        self._declared.pop(stack, None)

    def of(self, stack: str, owner: str, leaving: Collection[str]) -> dict[str, str]:
        """Return those of the objects that leave a stack which another stack of its owner declares, and that stack.

        Raises:
            NotReady: another stack of the owner was not read yet.
        """
        if not leaving:
            return {}
        self._check_examined(stack, owner)
        found: dict[str, str] = {}
        for other, source in self._sources.items():
            taken = self._keys(other, source).intersection(leaving)
            if taken and other != stack and self._is_of(other, source, owner):
                found |= dict.fromkeys(taken, other)
        return found

    def _keys(self, stack: str, source: CoMap) -> frozenset[str]:
        """Return `Kind/name` of the objects that a stack's map has now; they are computed once for each value."""
        objects = source.get(OBJECTS)
        known = self._declared.get(stack)
        if known is None or known[0] is not objects:
            known = self._declared[stack] = (objects, frozenset(_keys(objects)))
        return known[1]

    def _check_examined(self, stack: str, owner: str) -> None:
        desired = self._context.data.desired
        for other in desired.keys() - self._examined - {stack}:
            edit = desired.edit(other)
            if edit is not None and edit.by == owner:
                raise NotReady(
                    f"stack {stack}: objects leave it, and stack {other}, which may take them, is not read yet"
                )

    def _is_of(self, stack: str, source: CoMap, owner: str) -> bool:
        entry, objects = self._context.entry(stack), source.edit(OBJECTS)
        authors = (entry.by if entry and not entry.deleted else None, objects.by if objects else None)
        return authors == (owner, owner)


def _keys(objects: Any) -> set[str]:
    """Return `Kind/name` of declared objects of any shape."""
    found = set()
    for obj in objects if isinstance(objects, list | tuple) else ():
        if isinstance(obj, dict) and isinstance(obj.get("metadata"), dict):
            found.add(f"{obj.get('kind')}/{obj['metadata'].get('name')}")
    return found
