"""Print the tables of docs/reasons.md, from the explanations of the command.

    python -m tests.support.reasons_page

A test compares the page with them.
"""

from __future__ import annotations

import sys

from reside.cli.explanation import (
    CALL,
    LOAD,
    OBJECT,
    PERMISSION,
    PLATFORM,
    POD,
    POLICY,
    REQUEST,
    STACK,
    VERSION,
    Explanation,
)
from reside.cli.explanations import explanations

TITLES = {
    VERSION: "Versions of a replica",
    REQUEST: "Load requests",
    LOAD: "Why a load does not proceed",
    POD: "Why Kubernetes does not run a pod",
    STACK: "Why an object is not applied",
    OBJECT: "Objects",
    PERMISSION: "Permissions",
    PLATFORM: "The platform",
    CALL: "Errors of calls",
    POLICY: "Rules of the policy",
}
"""Topic → heading, in the order of the page."""


def tables() -> str:
    """Return one section for each topic."""
    return "\n".join(_section(topic) for topic in TITLES)


def _section(topic: str) -> str:
    rows = [_row(each) for each in explanations() if each.topic == topic]
    head = ["| code | meaning | what to do |", "| --- | --- | --- |"]
    return "\n".join([f"## {TITLES[topic]}", "", *head, *rows, ""])


def _row(each: Explanation) -> str:
    return f"| `{each.code}` | {_cell(each.meaning)} | {_cell(each.cure)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    sys.stdout.write(tables())
