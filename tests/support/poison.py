"""Generated declarations: documents that are nearly stacks, and anything else that fits into a map in Jazz."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.sentinel import config_map, service, workload

_TEXT = st.text(st.characters(), max_size=12)
"""With halves of surrogate pairs, control characters and all planes."""
_NUMBER = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
_JSON = st.recursive(
    st.none() | st.booleans() | _NUMBER | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)
_EXTREMES = (10**30, -1, "", "Secret", "kube-system", {"$ref": "#"})
"""Parts of which each is used in a hundredth of the documents, at most."""


def _nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def _damaged(value: Any, path: list[int], part: Any) -> Any:
    """Replace what a path leads to in a document: each number chooses a member, modulo their number."""
    if not path or not isinstance(value, dict | list) or not value:
        return part
    key = sorted(value)[path[0] % len(value)] if isinstance(value, dict) else path[0] % len(value)
    value[key] = _damaged(value[key], path[1:], part)
    return value


def _parts(count: int) -> list[Any]:
    """Return so many JSON values."""
    found: list[Any] = []

    @settings(
        max_examples=count, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(_JSON)
    def collect(part: Any) -> None:
        found.append(part)

    collect()
    return found


def poisoned(owner: str, count: int) -> dict[str, dict[str, Any]]:
    """Return so many documents by the names under which they are declared, the same ones in each run.

    Of each a part is replaced, or nothing.
    """
    parts, source = _parts(min(count, 2000)), random.Random(14)  # noqa: S311 - the same ones in each run
    found: dict[str, dict[str, Any]] = {}
    for number in range(count):
        name = f"p{number}"
        objects = [config_map(name, name, x="1"), service(name, name), workload("Deployment", name, name, replicas=0)]
        stack: dict[str, Any] = {"name": name, "owner": owner, "objects": objects[: source.randint(1, 3)]}
        part = source.choice(parts)
        if number % 100 < len(_EXTREMES):
            part = _EXTREMES[number % 100]
        elif number % 100 < 2 * len(_EXTREMES):
            part = _nested(source.choice((70, 400, 980)))
        path = [source.randrange(10) for _ in range(source.choice((1, 3, 4, 4, 5, 6, 7, 8)))]
        if number % 10:
            stack = _damaged(stack, path, part)
        found[name] = stack
    return found
