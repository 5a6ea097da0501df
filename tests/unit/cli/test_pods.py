"""How `reside replica pods` lists pods."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console

from reside.cli import listing, output
from reside.cli.pods import COLUMNS, rows
from reside.model.pod_logs import PodLog, PodState

if TYPE_CHECKING:
    import pytest

FOUND = [
    PodLog(
        pod="greeter-12-7d9f8b6c5-x2k4q",
        state=PodState(phase="Running", ready=True, version="12", node="one", created="2026-01-01T00:00:00Z"),
    ),
    PodLog(pod="greeter-13-6f7b9c8d4-p9w2z", state=PodState(phase="Pending", problem="ImagePullBackOff: not found")),
    PodLog(pod="of-an-earlier-sentinel"),
]


def test_the_list_fits_eighty_columns_and_shows_the_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(output, "console", Console(file=written, width=80, force_terminal=True, color_system=None))
    listing.show(rows(FOUND), COLUMNS, listing.ListOptions())
    lines = written.getvalue().splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[1].split()[:4] == ["greeter-12-7d9f8b6c5-x2k4q", "12", "Running", "yes"]
    assert "Pending" in written.getvalue()
    assert "ImagePullBackOff" in written.getvalue()


def test_programs_get_all_that_is_known() -> None:
    first, second, third = rows(FOUND)
    assert (first["node"], first["restarts"], second["ready"]) == ("one", 0, False)
    assert third == {"name": "of-an-earlier-sentinel"}
