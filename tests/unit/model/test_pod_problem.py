"""What keeps a pod from running, as one stable text."""

from __future__ import annotations

from typing import Any

import pytest

from reside.model.pod_problem import pod_problem

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
