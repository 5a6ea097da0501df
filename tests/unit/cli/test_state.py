"""What `reside state` shows and does with the Sentinel's answers."""

from __future__ import annotations

from typing import Any

import pytest
from typer.main import get_command

from reside.cli.main import command
from reside.cli.operator_requests import Answer
from reside.cli.state import move_all, to_give
from reside.model.sentinel_data import MIGRATE_STATES, STACKS


def test_only_what_the_sentinel_does_not_refuse_is_given() -> None:
    assert to_give({"a": "would belong to it", "b": "refused: it belongs to co_z1", "c": "failed: full"}) == ["a"]


def test_the_commands_are_those_of_the_model() -> None:
    state = get_command(command(["state"])).commands["state"]  # type: ignore[attr-defined] # it is a group
    assert set(state.commands) == {"reassign", "export", "import", "migrate", "prune"}


class Sentinel:
    """Moves two states a request; that of `broken` can't be moved."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    async def ask(self, action: str, members: dict[str, Any]) -> Answer:
        """Answer as the Sentinel does."""
        assert action == MIGRATE_STATES
        names = members[STACKS]
        self.asked.append(names)
        return Answer({STACKS: {name: "failed: x" if name == "broken" else "moved" for name in names[:2]}})


@pytest.mark.anyio
async def test_states_are_moved_in_batches_and_one_that_fails_is_tried_once() -> None:
    sentinel = Sentinel()
    assert await move_all(sentinel, ["a", "broken", "c"]) == ["broken"]
    assert sentinel.asked == [["a", "broken", "c"], ["c"]]
