"""A oneshot replica runs once, gets the status completed, and is not run again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


def test_a_report_ends_as_completed(platform: Platform) -> None:
    said = platform.load(platform.build("examples/replicas/report", "v1")).stdout
    assert "report" in said
    assert "version 1 is completed" in said
    assert platform.replicas()["report"]["status"] == "completed"
    jobs = platform.objects_of("report", "Job")
    assert [job["status"]["succeeded"] for job in jobs] == [1]
