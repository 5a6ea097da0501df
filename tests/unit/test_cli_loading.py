"""When a load is over."""

from __future__ import annotations

import pytest

from reside.cli.loading import is_reached


@pytest.mark.parametrize(
    ("kind", "status", "reached"),
    [
        ("long-running", "starting", False),
        ("long-running", "running", True),
        ("oneshot", "running", False),
        ("oneshot", "completed", True),
        ("oneshot", "error", True),
    ],
)
def test_a_load_ends_when_a_replica_runs_and_when_a_oneshot_completed(kind: str, status: str, reached: bool) -> None:
    assert is_reached({"class": kind, "status": status}) is reached
