"""docs/metrics.md is what the code says of its metrics."""

from __future__ import annotations

import re
from pathlib import Path

from tools.metrics_reference import MODULES, PAGE, page


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), "run `python tools/metrics_reference.py`"


def test_every_metric_says_what_it_means_in_a_sentence() -> None:
    rows = re.findall(r"^\| `(reside_\w+)` \| \w+ \|[^|]*\| (.*) \|$", page(), re.MULTILINE)
    assert len(rows) > 20
    assert [name for name, meaning in rows if not re.fullmatch(r"[A-Z0-9].*\.", meaning)] == []


def test_every_module_that_declares_metrics_is_looked_at() -> None:
    root = Path(__file__).parents[3] / "reside"
    using = {
        ".".join(("reside", *path.relative_to(root).with_suffix("").parts))
        for path in root.rglob("*.py")
        if re.search(r"^from prometheus_client import .*\b(Counter|Gauge|Histogram)\b", path.read_text(), re.MULTILINE)
    }
    assert using == {module for modules in MODULES.values() for module in modules}
