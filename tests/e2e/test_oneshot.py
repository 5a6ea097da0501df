"""A oneshot replica runs once and gets the status completed, also if it has to wait for a permission."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from e2e.calls import GREETING
from e2e.load_requests import number_in
from support.eventually import eventually_sync
from support.platform import REGISTRY, ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


def test_a_report_ends_as_completed(platform: Platform) -> None:
    said = platform.load(platform.build("examples/replicas/report", "v1")).stdout
    assert "report" in said
    assert "version 1 is completed" in said
    assert platform.replicas()["report"]["status"] == "completed"
    jobs = platform.objects_of("report", "Job")
    assert [job["status"]["succeeded"] for job in jobs] == [1]


WAITER = """
from reside.replica import Replica

waiter = Replica()

@waiter.main
async def main(context):
    greeter = await context.peer("greeting")
    assert await greeter.granted("greet") is None
    await greeter.until_granted("greet")
    await greeter.call("greet", {"name": context.name})

waiter.launch()
"""


def _build_waiter(platform: Platform, folder: Path) -> str:
    """Return an image that requires the greeter without a permission, waits until it may greet, and does so."""
    manifest = yaml.safe_load((ROOT / "examples/replicas/report/replica.yaml").read_text())
    manifest |= {"identity": f"{REGISTRY}/waiter", "requirements": {"greeting": {"identity": GREETING}}}
    manifest["info"]["name"] = "waiter"
    (folder / "replica.yaml").write_text(yaml.safe_dump(manifest))
    (folder / "main.py").write_text(WAITER)
    return platform.build(folder, "v1")


def test_a_oneshot_waits_for_its_grant(platform: Platform, tmp_path: Path) -> None:
    number = number_in(platform.reside("request", "create", _build_waiter(platform, tmp_path)).stdout)
    platform.reside("request", "approve", str(number), "--auto-approve")
    eventually_sync("a pod that waits", lambda: platform.ready_pods("waiter"), within=180)
    assert platform.replicas()["waiter"]["status"] == "running"
    platform.reside("permission", "grant", "waiter", "greeter", "greet", "--reason", "it asked nicely")
    eventually_sync(
        "the end of the oneshot", lambda: platform.replicas()["waiter"]["status"] == "completed", within=180
    )
    (job,) = platform.objects_of("waiter", "Job")
    assert (job["status"]["succeeded"], job["status"].get("failed", 0)) == (1, 0)
