"""Write docs/codes.md, what `reside explain` knows, from the code: `python tools/codes_reference.py`.

A unit test fails if the page is not what this program writes.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # a script's path does not contain the parent folder

PAGE: Final = ROOT / "docs/codes.md"
_HEAD: Final = """\
# Codes, statuses and reasons

What ReSide's error codes and statuses mean, the reasons that Kubernetes gives, and the rules of the policy, each with
its cure. `reside explain CODE` shows one of them, also for the whole text of a reason. `python
tools/codes_reference.py` writes this page from the code.
"""
_TITLES: Final = {
    "call error": "Errors of calls",
    "version status": "Statuses of versions",
    "request status": "Statuses of load requests",
    "permission status": "Statuses of direct grants",
    "object report": "What the Sentinel reports of an object",
    "object state": "States of objects in Kubernetes",
    "load": "Why a load waits or is refused",
    "Kubernetes": "Reasons of Kubernetes",
    "platform": "Parts of the platform",
    "policy rule": "Rules of the policy",
}
"""Topic → heading; in the order of the page."""


def page() -> str:
    """Return the whole page."""
    from reside.cli.explanations import explanations  # noqa: PLC0415 - after the path is set

    order = list(_TITLES)
    lines: list[str] = []
    for topic, group in groupby(sorted(explanations(), key=lambda each: order.index(each.topic)), lambda e: e.topic):
        lines += ["", f"## {_TITLES[topic]}", "", "| code | meaning | what to do |", "| --- | --- | --- |"]
        lines += [f"| `{each.code}` | {_cell(each.meaning)} | {_cell(_sentence(each.cure))} |" for each in group]
    return _HEAD + "\n".join(lines) + "\n"


def _sentence(cure: str) -> str:
    return (cure if cure.startswith("`") else cure[:1].upper() + cure[1:]).rstrip(".") + "."


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
