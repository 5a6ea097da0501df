"""What keeps a pod from running or from being ready, as one stable text."""

from __future__ import annotations

from typing import Any

import pytest

from reside.model.pod_problem import failing_probe, pod_problem

ENDED = {"terminated": {"exitCode": 1, "reason": "Error", "message": "password=hunter2"}}


def container(**members: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"ready": False, "restartCount": 0, **members}]}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason, "message": message}}}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, None),
        (container(state={"running": {}}), None),
        (container(**waiting("ContainerCreating")), None),
        (container(**waiting("PodInitializing")), None),
        (container(state={"running": {}}, ready=True, restartCount=2, lastState=ENDED), None),
        (
            container(**waiting("CreateContainerConfigError", 'secret "greeter" not found')),
            'CreateContainerConfigError: secret "greeter" not found',
        ),
        (container(**waiting("ErrImagePull", "not found")), "ImagePullBackOff: not found"),
        (
            container(**waiting("ImagePullBackOff", 'Back-off pulling image "a/b:c": ErrImagePull: not found')),
            "ImagePullBackOff: not found",
        ),
        (container(**waiting("ImagePullBackOff", 'Back-off pulling image "a/b:c"')), "ImagePullBackOff"),
        (
            container(restartCount=1, lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled"}}),
            "CrashLoopBackOff: exit code 137 (OOMKilled)",
        ),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1"}]},
            "Unschedulable: 0/1",
        ),
        ({"conditions": [{"type": "PodScheduled", "status": "True"}]}, None),
        ({"initContainerStatuses": [waiting("InvalidImageName", "x" * 999)]}, f"InvalidImageName: {'x' * 300}"),
    ],
)
def test_the_reason_is_that_of_kubernetes(status: dict[str, Any], expected: str | None) -> None:
    assert pod_problem({"status": status}) == expected


def test_a_crash_loop_has_one_text_in_all_of_its_states() -> None:
    back_off = waiting("CrashLoopBackOff", "back-off 5m0s restarting failed container=x pod=y")["state"]
    states = [back_off, {"running": {}}, ENDED]
    found = {pod_problem({"status": container(state=state, restartCount=4, lastState=ENDED)}) for state in states}
    assert found == {"CrashLoopBackOff: exit code 1"}, "and no message of the container, which may have secrets"


def test_a_pod_without_a_status_has_no_problem() -> None:
    assert pod_problem({"metadata": {}}) is None


def event(message: str, *, seconds: int = 5, reason: str = "Unhealthy") -> dict[str, Any]:
    """Return an event that the kubelet has counted for so many seconds."""
    times = {"firstTimestamp": "2026-01-01T00:00:59Z", "lastTimestamp": f"2026-01-01T00:01:{seconds - 1:02}Z"}
    return {"reason": reason, "message": message, "type": "Warning"} | times


GET = 'Get "http://10.1.2.3:8080/readyz"'


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Readiness probe failed: HTTP probe failed with statuscode: 503", "Readiness probe failed: HTTP status 503"),
        (
            f"Readiness probe failed: {GET}: dial tcp: connect: connection refused",
            "Readiness probe failed: connection refused",
        ),
        (f"Startup probe failed: {GET}: context deadline exceeded (x)", "Startup probe failed: timeout"),
        (f"Liveness probe failed: {GET}: request canceled (Client.Timeout exceeded)", "Liveness probe failed: timeout"),
        (f"Readiness probe failed: {GET}: malformed HTTP status code password=hunter2", "Readiness probe failed"),
        ("Readiness probe failed: password=hunter2 statuscode: 503", "Readiness probe failed"),
        ("Readiness probe errored and resulted in unknown state: rpc error", "Readiness probe errored"),
    ],
)
def test_a_failing_probe_is_named_with_its_cause_and_without_what_the_program_said(message: str, expected: str) -> None:
    assert failing_probe(event(message)) == f"Unhealthy: {expected}"


@pytest.mark.parametrize(
    "other",
    [
        event("Readiness probe failed: connection refused", seconds=4),
        event("Readiness probe failed: connection refused", reason="ProbeWarning"),
        event("something else"),
        {"reason": "Unhealthy", "message": "Readiness probe failed", "firstTimestamp": None},
        {},
    ],
)
def test_a_probe_that_fails_while_a_program_starts_is_no_problem(other: dict[str, Any]) -> None:
    assert failing_probe(other) is None
