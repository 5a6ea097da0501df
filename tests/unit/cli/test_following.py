"""Logs are followed from where the last read ended, over whatever restarts in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reside.cli import following
from reside.cli.following import MOST_LINES, WAIT_S, follow
from reside.jazz import JazzUnavailable
from reside.model.errors import NotAllowed, NotReady, ResideError
from reside.model.pod_logs import PodLog

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.anyio


class Logs:
    """Answers in this order; an error is raised. The last one ends a test."""

    def __init__(self, *answers: list[PodLog] | Exception) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[dict[str, str], int, int]] = []
        self.said: list[str] = []

    async def read(self, since: Mapping[str, str], lines: int, wait_s: int) -> list[PodLog]:
        """Return the next answer."""
        self.asked.append((dict(since), lines, wait_s))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def texts(self) -> list[str]:
        """Return what is read before `NotAllowed`."""
        found: list[str] = []

        async def collect() -> None:
            async for logs in follow(self.read, 7, self.said.append):
                found.extend(log.text for log in logs)

        with pytest.raises(NotAllowed):
            await collect()
        return found


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "PAUSE_S", 0.0)


def log(pod: str, text: str, cursor: str | None) -> PodLog:
    return PodLog(pod=pod, text=text, cursor=cursor)


async def test_each_read_begins_where_the_one_before_ended_and_a_new_pod_from_its_first_line() -> None:
    logs = Logs([log("a", "1", "1/1")], [log("a", "", "1/1"), log("b", "2", "2/1")], [], NotAllowed("lacks logs:read"))
    assert await logs.texts() == ["1", "", "2"]
    assert logs.asked == [
        ({}, 7, WAIT_S),
        ({"a": "1/1"}, MOST_LINES, WAIT_S),
        ({"a": "1/1", "b": "2/1"}, MOST_LINES, WAIT_S),
        ({}, MOST_LINES, WAIT_S),
    ]


async def test_what_is_away_for_a_while_is_told_and_read_from_the_same_place() -> None:
    away = (NotReady("the Sentinel did not answer"), JazzUnavailable("no connection"))
    logs = Logs([log("a", "1", "1/1")], *away, [log("a", "2", "2/1")], NotAllowed("lacks logs:read"))
    assert await logs.texts() == ["1", "2"]
    assert [since for since, _, _ in logs.asked] == [{}, *[{"a": "1/1"}] * 3, {"a": "2/1"}]
    assert len(logs.said) == 2


async def test_a_sentinel_that_can_not_follow_is_not_asked_again_and_again() -> None:
    logs = Logs([log("a", "1", None)])
    with pytest.raises(ResideError, match="reside cluster upgrade"):
        await anext(follow(logs.read, 7, logs.said.append))
