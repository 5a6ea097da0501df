"""Write docs/metrics.md, all metrics with their labels, from the code: `python tools/metrics_reference.py`.

A unit test fails if the page is not what this program writes.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import Counter, Gauge, Histogram

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # a script's path does not contain the parent folder

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE: Final = ROOT / "docs/metrics.md"
OPERATIONS: Final = "operations.md"
MODULES: Final = {
    "All replicas": ("reside.replica.health", "reside.replica.start_steps"),
    "Alpha": ("reside.alpha.metrics",),
    "The Kubernetes Sentinel": (
        "reside.sentinel.term.metrics",
        "reside.sentinel.term.applier",
        "reside.sentinel.term.prune",
        "reside.sentinel.guard.findings",
        "reside.sentinel.guard.repair_events",
        "reside.sentinel.guard.watch",
        "reside.sentinel.engine.stack_files",
        "reside.sentinel.engine.resident_runner",
    ),
}
"""Heading → the modules that declare the metrics below it."""
_TYPES: Final[dict[str, Any]] = {"counter": Counter, "gauge": Gauge, "histogram": Histogram}
_HEAD: Final = f"""\
# Metrics

Every replica serves its metrics for Prometheus at `/metrics` on port 8080, beside those of Python's client library. The
numbers are those of one process. [{OPERATIONS}]({OPERATIONS}#monitoring) has alert rules and a dashboard. `python
tools/metrics_reference.py` writes this page from the code.
"""


def page() -> str:
    """Return the whole page."""
    lines = []
    for heading, modules in MODULES.items():
        lines += ["", f"## {heading}", "", "| metric | type | labels | meaning |", "| --- | --- | --- | --- |"]
        lines += [_row(*found) for module in modules for found in _declared(module)]
    return _HEAD + "\n".join(lines) + "\n"


def _row(name: str, kind: str, labels: str, meaning: str) -> str:
    return f"| `{name}` | {kind} | {labels} | {meaning} |"


def _declared(module: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, type, labels and help of the metrics that a module declares, in its order."""
    for value in vars(importlib.import_module(module)).values():
        kind = next((kind for kind, of in _TYPES.items() if type(value) is of), None)
        if kind is not None:
            suffix = "_total" if kind == "counter" else ""
            yield f"{value._name}{suffix}", kind, ", ".join(value._labelnames), value._documentation  # noqa: SLF001


if __name__ == "__main__":
    PAGE.write_text(page())
