"""How the command shows a canary, and when the load of one is finished."""

from __future__ import annotations

from typing import Any

import pytest
from unit.alpha.entities import digest

from reside.cli.loading import is_finished, row_of_canary
from reside.cli.rendered_request import render_request
from reside.cli.replicas import ended, note
from reside.cli.spec_options import SpecOptions
from reside.model.entities import ApproveRequest, HealthPolicy, LoadRequest, ReplicaVersion
from reside.model.manifest import ReplicaInfo


def version(number: int, status: str = "running", **members: Any) -> ReplicaVersion:
    return ReplicaVersion(id=number, status=status, image="image", digest=digest(number), **members)


CURRENT = version(1)


def test_the_list_shows_the_canary_and_how_it_ended() -> None:
    canary = version(2, canary_percent=25)
    assert note("greeter", CURRENT, (CURRENT, canary), canary) == "canary: version 2 is running, with 25 % of the pods"
    crashing = version(2, "starting", canary_percent=25, reason="CrashLoopBackOff: exit code 1")
    expected = "canary: version 2 is starting (CrashLoopBackOff: exit code 1), with 25 % of the pods"
    assert note("greeter", CURRENT, (CURRENT, crashing), crashing) == expected
    aborted = version(2, "stopped", canary_percent=25, rolled_back_to=1, reason="it was not healthy")
    assert note("greeter", CURRENT, (CURRENT, aborted)) == "version 2 was a canary and was aborted: it was not healthy"
    assert ended(aborted.model_copy(update={"reason": None})) == "version 2 was a canary and was aborted"
    assert ended(version(2, rolled_back_to=1, reason="it failed")) == "version 2 was rolled back: it failed"


def row(status: str) -> dict[str, Any]:
    """Return the row of a replica whose version 2 is a canary in this status."""
    versions = [
        {"id": 1, "status": "running", "reason": None, "wasHealthy": True},
        {"id": 2, "status": status, "reason": "why", "wasHealthy": False},
    ]
    return {"version": 1, "status": "running", "reason": None, "class": "long-running", "canary": 2} | {
        "versions": versions
    }


def test_a_load_follows_the_canary_instead_of_the_current_version() -> None:
    seen = row_of_canary(row("starting"), 2)
    assert (seen["version"], seen["status"], seen["reason"]) == (2, "starting", "why")
    assert row_of_canary(row("starting"), 1)["version"] == 1


@pytest.mark.parametrize(("status", "finished"), [("starting", False), ("running", True), ("error", False)])
def test_the_load_of_a_canary_ends_when_it_runs_or_is_aborted(status: str, finished: bool) -> None:
    assert is_finished(row_of_canary(row(status), 2), HealthPolicy()) is finished


def test_the_approver_sees_the_share_of_the_canary() -> None:
    assert SpecOptions(canary=25).spec("ghcr.io/acme/hello").canary_percent == 25
    info = ReplicaInfo.model_validate({"name": "greeter", "class": "long-running", "exclusive": True, "scalable": True})
    content = ApproveRequest(info=info, name="greeter", identity="greeter", digest=digest(2))
    request = LoadRequest(
        id=7, status="requires-approval", image="image", owner="co_z", canary_percent=25, approve_request=content
    )
    head: Any = render_request(request)
    cells = [str(cell) for table in head.renderables for column in table.columns for cell in column.cells]
    assert "25 % of the pods, rounded down, but at least one; the current version keeps the others" in cells
