"""Why a pod does not start, for the operator of a bootstrap."""

from __future__ import annotations

from typing import Any

import pytest
from lightkube.resources.core_v1 import Pod

from reside.seed.pod_problems import described


def pod(**status: Any) -> Pod:
    return Pod.from_dict({"metadata": {"name": "jazz-0"}, "status": status})


def container(**members: Any) -> dict[str, Any]:
    return {"name": "jazz", "image": "x", "imageID": "", "ready": False, "restartCount": 0, **members}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, None),
        ({"containerStatuses": [container(state={"running": {}})]}, None),
        (
            {"containerStatuses": [container(restartCount=3, lastState={"terminated": {"exitCode": 1}})]},
            "jazz-0: CrashLoopBackOff: exit code 1, see `kubectl logs jazz-0`",
        ),
        (
            {"initContainerStatuses": [container(state={"waiting": {"reason": "ImagePullBackOff"}})]},
            "jazz-0: ImagePullBackOff, see `kubectl describe pod jazz-0`",
        ),
    ],
)
def test_a_problem_is_described_with_the_command_that_shows_more(status: dict[str, Any], expected: str | None) -> None:
    assert described(pod(**status)) == expected


def test_a_pod_without_a_status_has_no_problem_yet() -> None:
    assert described(Pod.from_dict({"metadata": {"name": "jazz-0"}})) is None
