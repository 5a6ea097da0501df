"""Loading a replica that requires another: request, approval, grant, calls through the Service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from e2e.administrator import block_permissions, registered
from e2e.calls import Refused, call_greeter
from e2e.pod_processes import slow_to_end
from support.eventually import eventually_sync

if TYPE_CHECKING:
    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def caller(platform: Platform) -> str:
    """Load the caller, and return the output of the command."""
    return platform.load(platform.build("examples/replicas/caller", "v1")).stdout


def test_the_request_shows_its_requirements_and_changes(caller: str) -> None:
    for shown in ("greeting.v1", "greeter", "greet", "create", "Deployment/caller-1", "Secret/caller"):
        assert shown in caller


def test_the_permission_is_granted_in_the_greeters_control_block(platform: Platform, caller: str) -> None:
    account = platform.secret("caller")["accountId"]
    granted = anyio.run(block_permissions, platform, "greeter")
    assert [p for p in granted if p["account"] == account and p["name"] == "greet" and p["current"]["granted"]]


def test_the_callers_calls_succeed(platform: Platform, caller: str) -> None:
    pod = platform.ready_pods("caller")[0]["status"]["podIP"]

    def calls() -> bool:
        metrics = platform.run("curl", "--silent", "--fail", f"http://{pod}:8080/metrics").stdout
        return 'caller_calls_total{outcome="ok"}' in metrics

    eventually_sync("a successful call", calls, within=180)


def test_without_the_grant_a_call_is_refused(platform: Platform) -> None:
    with pytest.raises(Refused, match="greet"):
        anyio.run(call_greeter, platform, anyio.run(registered, platform))


def test_an_update_of_the_caller_stops_it_first(platform: Platform, caller: str) -> None:
    """Also if its pod takes 10 s to end: on Kubernetes 1.34, a Deployment does not count a pod that terminates."""
    (pod,) = platform.ready_pods("caller")
    with platform.watching("pods", "-l", "reside.io/replica=caller") as events, slow_to_end(platform, pod, 10):
        platform.load(
            platform.build("examples/replicas/caller", "v2"), "--replica-id", str(platform.replicas()["caller"]["id"])
        )
    assert events.most_at_once() == 1, events.summary()
    assert {pod["metadata"]["labels"]["reside.io/version"] for pod in platform.ready_pods("caller")} == {"2"}
