"""What the Sentinel answers to a request for logs: bounded, and without the text of unexpected errors."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from pydantic import TypeAdapter

from reside.model.errors import InvalidInput
from reside.model.pod_logs import PodLog, PodState, pod_state
from reside.sentinel.contract.operator_requests import OperatorRequest
from reside.sentinel.errors import ClusterRefused
from reside.sentinel.term.pod_logs import MOST_PODS, SIZE, PodLogs


class Api:
    """Pods with these logs, the first one made first; an error in place of a log is raised."""

    def __init__(self, **logs: bytes | Exception) -> None:
        self._logs = logs

    async def list_pods(self, labels: dict[str, str]) -> list[dict[str, Any]]:
        """Return all pods."""
        assert labels == {"reside.io/replica": "greeter"}
        return [
            {"metadata": {"name": name, "creationTimestamp": f"2026-01-{number:02}"}, "status": {"phase": "Running"}}
            for number, name in reversed(list(enumerate(self._logs, 1)))
        ]

    async def log_end(self, pod: str, container: str, *, lines: int, size: int) -> bytes:
        """Return the end of a log."""
        assert (container, lines) == ("replica", 7)
        found = self._logs[pod]
        if isinstance(found, Exception):
            raise found
        return found[-size:]


def show(api: Api, **members: Any) -> list[PodLog]:
    given = {"replica": "greeter", "tail": 7, **members}
    request = OperatorRequest("co_zoperator", "logs", given)  # type: ignore[arg-type] # an id is a text
    result = anyio.run(PodLogs(api).show, request)  # type: ignore[arg-type] # it has what is used
    logs = TypeAdapter(list[PodLog]).validate_json(result.file or b"")
    assert result.members == {"replica": "greeter", "pods": len(logs)}
    return logs


def test_each_pod_has_its_text_or_why_there_is_none() -> None:
    waiting = ClusterRefused("read the log of b: it is waiting to start", 400)
    assert show(Api(a=b"caf\xc3\xa9 \xff\n", b=waiting)) == [
        PodLog(pod="a", text="café \N{REPLACEMENT CHARACTER}\n", state=PodState(phase="Running", created="2026-01-01")),
        PodLog(
            pod="b",
            error="read the log of b: it is waiting to start",
            state=PodState(phase="Running", created="2026-01-02"),
        ),
    ]


def test_large_logs_share_the_answer_and_begin_with_a_whole_line() -> None:
    many = show(Api(**{f"p{number:02}": b"begin\n" + b"x" * 99 + b"\n" for number in range(25)}))
    assert [each.pod for each in many] == [f"p{number:02}" for number in range(5, 5 + MOST_PODS)]
    line = b"0123456789\n"
    (cut,) = show(Api(a=line * SIZE))
    assert cut.is_cut
    assert SIZE - len(line) <= len(cut.text) < SIZE
    assert set(cut.text.splitlines()) == {"0123456789"}


@pytest.mark.parametrize(
    "members", [{"replica": "../x"}, {"replica": 1}, {"tail": 0}, {"tail": True}, {"tail": "7"}, {"tail": 10_001}]
)
def test_a_malformed_request_is_refused(members: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        show(Api(a=b""), **members)


def test_a_replica_without_pods_is_said() -> None:
    with pytest.raises(InvalidInput, match="has no pods now"):
        show(Api())


def test_the_state_of_a_pod_is_what_kubernetes_says() -> None:
    waiting = {"restartCount": 2, "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}
    pod = {
        "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"reside.io/version": "3"}},
        "spec": {"nodeName": "one"},
        "status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]},
    }
    found = pod_state(pod | {"status": pod["status"] | {"containerStatuses": [waiting]}})
    assert found == PodState(
        phase="Pending",
        restarts=2,
        version="3",
        node="one",
        created="2026-01-01T00:00:00Z",
        problem="ImagePullBackOff: not found",
    )
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    assert pod_state({"status": ready}) == PodState(phase="Running", ready=True)
    assert pod_state({"metadata": {"deletionTimestamp": "t"}}).phase == "Terminating"
    assert pod_state({}).phase == "Unknown"
