"""Load requests are created and decided once, by authorized accounts, while they are open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from e2e.administrator import grant
from e2e.load_requests import approve, asking, call, load_request, number_in
from support.eventually import eventually_sync
from support.platform import REGISTRY

from reside.model.constants import ALPHA_CONTRACT
from reside.model.errors import Conflict
from reside.model.permissions import PermissionRef

if TYPE_CHECKING:
    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def image(platform: Platform) -> str:
    return platform.build("examples/replicas/report", "v1")


def _has_one_version(platform: Platform, name: str) -> None:
    eventually_sync(
        f"the end of {name}", lambda: platform.replicas().get(name, {}).get("status") == "completed", within=240
    )
    assert [version["id"] for version in platform.replicas()[name]["versions"]] == [1]


def test_answering_no_rejects_the_request_permanently(platform: Platform, image: str) -> None:
    with asking(platform, image, "unwanted") as load:
        done = load.answer("n")
    assert done.returncode == 1
    assert f"load request {load.number} was rejected" in done.stdout
    assert load_request(platform, load.number).status == "rejected"
    with pytest.raises(
        Conflict, match=rf"load request {load.number} is rejected \(rejected by the operator\): only one"
    ):
        approve(platform, load.number)
    assert "unwanted" not in platform.replicas()


def test_a_prompt_without_an_answer_rejects_the_request(platform: Platform, image: str) -> None:
    with asking(platform, image, "unanswered") as load:
        done = load.answer("")
    assert done.returncode == 1
    assert "--auto-approve" in done.stdout
    request = load_request(platform, load.number)
    assert (request.status, request.rejection_reason) == ("rejected", "no answer")


def test_a_request_that_was_rejected_meanwhile_is_not_approved(platform: Platform, image: str) -> None:
    with asking(platform, image, "late") as load:
        call(platform, "reject-load-request", id=load.number, reason="not today")
        done = load.answer("y")
    assert done.returncode == 1
    assert f"load request {load.number} was rejected by another operator: not today" in " ".join(done.stdout.split())
    assert "late" not in platform.replicas()


def test_a_request_that_was_approved_meanwhile_is_not_approved_twice(platform: Platform, image: str) -> None:
    with asking(platform, image, "twice-approved") as load:
        approve(platform, load.number)
        done = load.answer("y")
    assert done.returncode == 1
    assert f"load request {load.number} was approved by another operator" in " ".join(done.stdout.split())
    with pytest.raises(Conflict, match=f"load request {load.number} is approved: only one that requires approval"):
        approve(platform, load.number)
    with pytest.raises(Conflict, match=f"load request {load.number} is approved"):
        call(platform, "reject-load-request", id=load.number, reason="too late")
    _has_one_version(platform, "twice-approved")


def test_an_invalid_request_is_not_approved(platform: Platform) -> None:
    number = number_in(platform.load(f"{REGISTRY}/nobody:v1", check=False).stderr)
    assert load_request(platform, number).status == "invalid"
    with pytest.raises(Conflict, match=rf"load request {number} is invalid \(.*no such image.*\): only one"):
        approve(platform, number)


def test_strangers_can_not_request_loads_and_requesters_can_not_approve_them(platform: Platform, image: str) -> None:
    requester = platform.as_other_operator("requester")
    refused = requester.load(image, "--name", "asked-for", check=False)
    assert refused.returncode == 1
    assert "load-request:create" in refused.stderr
    ref = PermissionRef(requester.accounts()["requester"], ALPHA_CONTRACT, "load-request:create")
    anyio.run(grant, platform, "alpha", ref)
    refused = requester.load(image, "--name", "asked-for", check=False)
    assert refused.returncode == 1
    assert "load-request:approve" in refused.stderr
    number = number_in(refused.stderr)
    assert load_request(platform, number).status == "requires-approval"
    assert "asked-for" not in platform.replicas()
    approve(platform, number)
    _has_one_version(platform, "asked-for")
