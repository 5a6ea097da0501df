"""Why a pod does not start."""

from __future__ import annotations

from typing import Any

import pytest
from lightkube.resources.core_v1 import Pod

from reside.seed.pod_problems import problems


def pod(**status: Any) -> Pod:
    return Pod.from_dict({"metadata": {"name": "jazz-0"}, "status": status})


def container(reason: str | None, restarts: int = 0) -> dict[str, Any]:
    state = {"running": {}} if reason is None else {"waiting": {"reason": reason}}
    return {"name": "jazz", "image": "x", "imageID": "", "ready": False, "restartCount": restarts, "state": state}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, []),
        ({"containerStatuses": [container(None)]}, []),
        ({"containerStatuses": [container("ContainerCreating")]}, []),
        (
            {"containerStatuses": [container("CrashLoopBackOff", 3)]},
            ["jazz-0: CrashLoopBackOff, see `kubectl logs jazz-0`"],
        ),
        (
            {"initContainerStatuses": [container("ImagePullBackOff")]},
            ["jazz-0: ImagePullBackOff, see `kubectl describe pod jazz-0`"],
        ),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}]},
            ["jazz-0: 0/1 nodes are available"],
        ),
        ({"conditions": [{"type": "PodScheduled", "status": "True"}]}, []),
    ],
)
def test_only_what_keeps_a_pod_from_starting_is_reported(status: dict[str, Any], expected: list[str]) -> None:
    assert list(problems(pod(**status))) == expected


def test_a_pod_without_a_status_has_no_problem_yet() -> None:
    assert list(problems(Pod.from_dict({"metadata": {"name": "jazz-0"}}))) == []
