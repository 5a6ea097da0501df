"""The alert rules and the dashboard use metrics that exist, and each alert has a cure."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
METRIC = re.compile(r"\breside_\w+")
FORMS = ("_bucket", "_sum", "_count")


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((ROOT / "docs/monitoring/alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions() -> list[str]:
    panels = json.loads((ROOT / "docs/monitoring/dashboard.json").read_text())["panels"]
    return [*(rule["expr"] for rule in rules()), *(target["expr"] for panel in panels for target in panel["targets"])]


def known() -> dict[str, set[str]]:
    """Return the labels of each metric, from its row in docs/metrics.md."""
    page = (ROOT / "docs/metrics.md").read_text()
    rows = re.findall(r"^\| `(reside_\w+)` \| \w+ \|([^|]*)\|", page, re.MULTILINE)
    return {name: {label.strip() for label in labels.split(",")} for name, labels in rows}


@pytest.mark.parametrize("expression", expressions())
def test_an_expression_uses_metrics_and_labels_that_exist(expression: str) -> None:
    metrics = {
        next((name.removesuffix(f) for f in FORMS if name.endswith(f)), name) for name in METRIC.findall(expression)
    }
    assert metrics <= set(known())
    labels = {label for name in metrics for label in known()[name]} | {"le", "replica"}
    grouped = {label.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(",")}
    assert grouped <= labels
    assert expression.count("(") == expression.count(")")


def test_every_alert_says_what_is_wrong_and_what_to_do() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["cure"]
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}
