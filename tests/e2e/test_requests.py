"""Two people: one asks for a load, another one decides on it (`reside request`)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from e2e.administrator import grant
from e2e.load_requests import number_in
from support.eventually import eventually_sync

from reside.model.constants import ALPHA_CONTRACT
from reside.model.permissions import PermissionRef

if TYPE_CHECKING:
    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def image(platform: Platform) -> str:
    return platform.build("examples/replicas/report", "v1")


@pytest.fixture(scope="module")
def asker(platform: Platform) -> Platform:
    """Return the cluster as a person uses it who may only ask for loads."""
    other = platform.as_other_operator("asker")
    ref = PermissionRef(other.accounts()["asker"], ALPHA_CONTRACT, "load-request:create")
    anyio.run(grant, platform, "alpha", ref)
    return other


def requests(platform: Platform, *options: str) -> dict[int, dict[str, Any]]:
    """Return the rows of `reside request list` by id."""
    rows = json.loads(platform.reside("request", "list", "--output", "json", *options).stdout)
    return {row["id"]: row for row in rows}


def test_one_person_asks_and_another_one_approves(platform: Platform, asker: Platform, image: str) -> None:
    said = asker.reside("request", "create", image, "--name", "asked").stdout
    number = number_in(said)
    assert f"waits for approval: reside request approve {number}" in said
    assert requests(platform)[number]["status"] == "requires-approval"
    assert "Job/asked-1" in asker.reside("request", "show", str(number)).stdout
    for shown in (asker.reside("request", "diff", str(number)), platform.reside("replica", "diff", "asked")):
        assert {"create Job/asked-1", "    + kind: Job"} <= set(shown.stdout.splitlines())
    refused = asker.reside("request", "approve", str(number), "--auto-approve", check=False)
    assert (refused.returncode, "load-request:approve" in refused.stderr) == (1, True)
    done = platform.reside("request", "approve", str(number), "--auto-approve", "--name", "renamed").stdout
    assert f"load request {number} is approved: version 1" in done
    eventually_sync(
        "the end of the oneshot", lambda: platform.replicas()["renamed"]["status"] == "completed", within=240
    )
    assert number not in requests(platform)
    assert requests(platform, "--all")[number]["version"] == 1


def test_a_rejected_request_says_why_to_the_one_who_asked(platform: Platform, asker: Platform, image: str) -> None:
    number = number_in(asker.reside("request", "create", image, "--name", "unwanted-one").stdout)
    refused = asker.reside("request", "reject", str(number), "--reason", "mine", check=False)
    assert (refused.returncode, "load-request:approve" in refused.stderr) == (1, True)
    platform.reside("request", "reject", str(number), "--reason", "too expensive")
    shown = json.loads(asker.reside("request", "show", str(number), "--output", "json").stdout)
    assert (shown["status"], shown["rejectionReason"]) == ("rejected", "too expensive")
    late = platform.reside("request", "approve", str(number), "--auto-approve", check=False)
    assert late.returncode == 1
    assert f"load request {number} can't be approved: it is rejected (too expensive)" in late.stderr


def test_what_may_not_be_read_or_does_not_exist_is_an_error(platform: Platform, asker: Platform, image: str) -> None:
    refused = asker.reside("request", "list", check=False)
    assert (refused.returncode, "load-request:read:all" in refused.stderr) == (1, True)
    unknown = platform.reside("request", "show", "99999", check=False)
    assert (unknown.returncode, "load request 99999 does not exist" in unknown.stderr) == (1, True)
    number = number_in(platform.reside("request", "create", image, "--name", "private").stdout)
    refused = asker.reside("request", "show", str(number), check=False)
    assert (refused.returncode, "can't be read" in refused.stderr) == (1, True)
    platform.reside("request", "reject", str(number), "--reason", "a test")
