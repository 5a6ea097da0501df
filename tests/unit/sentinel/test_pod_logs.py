"""What the Sentinel answers to a request for logs: bounded, and without the text of unexpected errors."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from pydantic import TypeAdapter
from pydantic_core import to_json

from reside.model.errors import InvalidInput
from reside.model.pod_logs import PodLog, PodState, pod_state
from reside.sentinel.contract.operator_requests import OperatorRequest
from reside.sentinel.errors import ClusterRefused
from reside.sentinel.term.pod_logs import MOST_PODS, SIZE, PodLogs


class Api:
    """Pods with these logs, the first one made first; an error in place of a log is raised."""

    def __init__(self, **logs: bytes | Exception) -> None:
        self._logs = logs
        self.since: list[str | None] = []

    async def list_pods(self, labels: dict[str, str]) -> list[dict[str, Any]]:
        """Return all pods."""
        assert labels == {"reside.io/replica": "greeter"}
        return [
            {"metadata": {"name": name, "creationTimestamp": f"2026-01-{number:02}"}, "status": {"phase": "Running"}}
            for number, name in reversed(list(enumerate(self._logs, 1)))
        ]

    async def log_end(
        self, pod: str, container: str, *, lines: int, size: int, since: str | None, stamped: bool
    ) -> bytes:
        """Return the end of a log."""
        assert (container, lines) == ("replica", 7)
        self.since.append(since)
        assert stamped or since is None
        found = self._logs[pod]
        if isinstance(found, Exception):
            raise found
        return found[-size:]


def show(api: Api, **members: Any) -> list[PodLog]:
    given = {"replica": "greeter", "tail": 7, **members}
    request = OperatorRequest("co_zoperator", "logs", given)  # type: ignore[arg-type] # an id is a text
    result = anyio.run(PodLogs(api).show, request)  # type: ignore[arg-type] # it has what is used
    assert result is not None
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
    assert SIZE - 2 * len(line) <= len(to_json(cut.text)) <= SIZE
    assert set(cut.text.splitlines()) == {"0123456789"}


@pytest.mark.parametrize(
    "members",
    [
        *({"replica": "../x"}, {"replica": 1}, {"tail": 0}, {"tail": True}, {"tail": "7"}, {"tail": 10_001}),
        *({"since": each} for each in ([], {"a": 1}, {"a": "now"}, dict.fromkeys(map(str, range(21)), "0/0"))),
        *({"since": {}, "wait": seconds} for seconds in (-1, 61, "1")),
    ],
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


STAMPED = b"2026-01-02T03:04:05.5Z first\n2026-01-02T03:04:06Z second\n"


def test_an_operator_who_follows_gets_what_is_new_with_its_position() -> None:
    api = Api(a=STAMPED)
    (begin,) = show(api, since={}, wait=60)
    assert (begin.text, begin.cursor) == ("first\nsecond\n", "1767323046000000000/1")
    (more,) = show(api, since={"a": "1767323045500000000/1"}, wait=60)
    assert (more.text, more.cursor) == ("second\n", begin.cursor)
    assert api.since == [None, "2026-01-02T03:04:05Z"]


def asked(api: Api, age_s: float, since: dict[str, str]) -> bool:
    """Return whether a request that waits 10 s is answered at this age."""
    members = {"replica": "greeter", "tail": 7, "since": since, "wait": 10}
    request = OperatorRequest("co_zoperator", "logs", members, age_s)  # type: ignore[arg-type] # an id is a text
    return anyio.run(PodLogs(api).show, request) is not None  # type: ignore[arg-type] # it has what is used


def test_a_request_waits_for_something_new_as_long_as_it_says() -> None:
    has_all = {"a": "1767323046000000000/1"}
    assert not asked(Api(a=STAMPED), 9.9, has_all)
    assert asked(Api(a=STAMPED), 10.0, has_all)
    assert asked(Api(a=STAMPED + b"2026-01-02T03:04:07Z third\n"), 0.0, has_all)
    assert not asked(Api(a=ClusterRefused("it is waiting to start", 400)), 0.0, {"a": "0/0"})
    assert asked(Api(a=STAMPED, b=b""), 0.0, has_all)
    assert asked(Api(), 0.0, has_all)
    assert not asked(Api(), 0.0, {})


def test_logs_of_control_characters_are_as_small_as_others() -> None:
    (found,) = show(Api(a=b"\x01" * SIZE))
    assert found.is_cut
    assert len(found.model_dump_json(include={"text"})) <= SIZE + 100
