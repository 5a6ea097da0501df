"""docs/metrics.md lists all metrics with their types and labels."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from prometheus_client import Counter, Gauge, Histogram

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
TYPES = {"counter": Counter, "gauge": Gauge, "histogram": Histogram}
MODULES = (
    "reside.alpha.metrics",
    "reside.replica.health",
    "reside.replica.start_steps",
    "reside.sentinel.engine.resident_runner",
    "reside.sentinel.engine.stack_files",
    "reside.sentinel.guard.findings",
    "reside.sentinel.guard.repair_events",
    "reside.sentinel.guard.watch",
    "reside.sentinel.term.applier",
    "reside.sentinel.term.metrics",
    "reside.sentinel.term.prune",
)


def declared() -> set[tuple[str, str, str]]:
    """Return name, type and labels of every metric that a module declares."""
    found = set()
    for module in MODULES:
        for value in vars(importlib.import_module(module)).values():
            for kind, of in TYPES.items():
                if type(value) is of:
                    suffix = "_total" if kind == "counter" else ""
                    found.add((f"{value._name}{suffix}", kind, ", ".join(value._labelnames)))
    return found


def test_the_page_lists_every_metric() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ?([\w, ]*?) \|", PAGE.read_text(), re.MULTILINE)
    assert set(rows) == declared()


def test_every_module_that_declares_metrics_is_looked_at() -> None:
    root = Path(__file__).parents[3] / "reside"
    using = {
        ".".join(("reside", *path.relative_to(root).with_suffix("").parts))
        for path in root.rglob("*.py")
        if re.search(r"^from prometheus_client import .*\b(Counter|Gauge|Histogram)\b", path.read_text(), re.MULTILINE)
    }
    assert using == set(MODULES)
