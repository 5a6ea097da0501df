"""Objects as JSON text in memory: less than a quarter of the memory of their dicts, and no work for Python's GC.

The text of a large object is compressed.

Each look-up unpacks a copy. So code that reads many objects iterates over keys, and looks up only what it needs.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, overload

import orjson

if TYPE_CHECKING:
    from reside.model.stacks import K8sObject

    Packed = bytes | K8sObject


_LARGE: Final = 512
"""Bytes from which a text is compressed; a smaller one shrinks by a fourth only."""
_LEVEL: Final = 1
"""Of compression. It halves a Deployment in 20 µs; higher levels save a few bytes more."""


def pack(obj: K8sObject) -> Packed:
    """Return an object as text, or the object itself if it has a number or text that orjson does not write."""
    try:
        text = orjson.dumps(obj)
    except TypeError:  # no object of Kubernetes has one
        return obj
    if len(text) >= _LARGE:
        return zlib.compress(text, _LEVEL)
    return bytes(memoryview(text))  # a copy: orjson shrinks a block of 1 KiB to it, and nothing else fits into the rest


def unpack(packed: Packed) -> K8sObject:
    """Return a packed object."""
    if isinstance(packed, dict):
        return packed
    found: dict[str, Any] = orjson.loads(packed if packed.startswith(b"{") else zlib.decompress(packed))
    return found


class PackedObjects(Mapping[str, "K8sObject"]):
    """Packed objects by `Kind/name`.

    Args:
        packed: the first of them.
    """

    def __init__(self, packed: Iterable[tuple[str, Packed]] = ()) -> None:
        self._packed = dict(packed)

    def __getitem__(self, key: str) -> K8sObject:
        return unpack(self._packed[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)

    def __contains__(self, key: object) -> bool:
        return key in self._packed

    def put(self, key: str, obj: K8sObject) -> None:
        """Keep an object."""
        self._packed[key] = pack(obj)

    def remove(self, key: str) -> None:
        """Remove an object, if there is one of this key."""
        self._packed.pop(key, None)


class PackedList(Sequence["K8sObject"]):
    """Packed objects in order; equal to any sequence of equal objects.

    Args:
        objects: the objects.
    """

    __slots__ = ("packed",)

    def __init__(self, objects: Iterable[K8sObject]) -> None:
        self.packed = tuple(map(pack, objects))

    @overload
    def __getitem__(self, index: int) -> K8sObject: ...
    @overload
    def __getitem__(self, index: slice) -> list[K8sObject]: ...
    def __getitem__(self, index: int | slice) -> K8sObject | list[K8sObject]:
        return unpack(self.packed[index]) if isinstance(index, int) else [unpack(each) for each in self.packed[index]]

    def __iter__(self) -> Iterator[K8sObject]:
        return map(unpack, self.packed)

    def __len__(self) -> int:
        return len(self.packed)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PackedList) and self.packed == other.packed:
            return True
        if not isinstance(other, PackedList | tuple | list):
            return NotImplemented
        return len(self) == len(other) and all(mine == its for mine, its in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"PackedList({list(self)})"


def packed(objects: Sequence[K8sObject]) -> PackedList:
    """Return objects as a packed list; the same list if they are one."""
    return objects if isinstance(objects, PackedList) else PackedList(objects)
