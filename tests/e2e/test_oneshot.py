"""A oneshot replica runs once, ends as completed, and is not run again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.platform import until

if TYPE_CHECKING:
    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


def test_a_report_ends_as_completed(platform: Platform) -> None:
    platform.load(platform.build("examples/replicas/report", "v1"))
    until("the end of the report", 60, lambda: platform.replicas()["report"]["status"] == "completed")
    jobs = platform.get("jobs", "-l", "reside.io/replica=report")["items"]
    assert [job["status"]["succeeded"] for job in jobs] == [1]
