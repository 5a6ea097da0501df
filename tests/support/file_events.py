"""Calls back when a file appears in a folder, by inotify, from a thread of its own."""

from __future__ import annotations

import ctypes
import os
import select
import struct
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_CREATED, _MOVED_IN = 0x100, 0x80
_HEAD = struct.Struct("iIII")


@contextmanager
def appearing(folder: Path, call: Callable[[str, bool], None]) -> Iterator[None]:
    """Call `call` with the name of each file that is created in a folder, or renamed to a name in it (True)."""
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = library.inotify_init1(os.O_CLOEXEC)
    if descriptor < 0 or library.inotify_add_watch(descriptor, os.fsencode(folder), _CREATED | _MOVED_IN) < 0:
        raise OSError(ctypes.get_errno(), f"{folder} can't be watched")
    ends, end = os.pipe()

    def watch() -> None:
        while descriptor in select.select([descriptor, ends], [], [])[0]:
            content = os.read(descriptor, 65536)
            while content:
                _, mask, _, length = _HEAD.unpack_from(content)
                name = content[_HEAD.size : _HEAD.size + length].rstrip(b"\0").decode()
                content = content[_HEAD.size + length :]
                call(name, bool(mask & _MOVED_IN))

    thread = threading.Thread(target=watch, name=f"watch {folder.name}")
    thread.start()
    try:
        yield
    finally:
        os.close(end)
        thread.join()
        os.close(ends)
        os.close(descriptor)
