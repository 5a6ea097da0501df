"""Paths of members of objects as Pulumi writes them: `spec.containers[0].image`, `data["a.b"]`. Pure."""

from __future__ import annotations

import re
from typing import Any, Final

_STEP: Final = re.compile(r'\.?(?:([^.\[\]"]+)|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\])')


def steps(path: str) -> tuple[str | int, ...]:
    """Return the members and list indexes of a path. What is no path is one member."""
    found: list[str | int] = []
    at = 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return (path,)
        name, index, quoted = step.groups()
        if index is not None:
            found.append(int(index))
        else:
            found.append(name if name is not None else re.sub(r"\\(.)", r"\1", quoted))
        at = step.end()
    return tuple(found)


def value_at(obj: Any, path: str) -> Any:
    """Return what an object has at a path; None if there is nothing."""
    for step in steps(path):
        if isinstance(step, int):
            obj = obj[step] if isinstance(obj, list | tuple) and step < len(obj) else None
        else:
            obj = obj.get(step) if isinstance(obj, dict) else None
    return obj
