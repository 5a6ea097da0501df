"""What is approved, and when a load is over."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from reside.cli.loading import approve, is_reached
from reside.model.entities import LoadRequest
from reside.model.errors import Conflict, LoadRefused, ResideError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("kind", "status", "reached"),
    [
        ("long-running", "starting", False),
        ("long-running", "running", True),
        ("oneshot", "running", False),
        ("oneshot", "completed", True),
        ("oneshot", "error", True),
    ],
)
def test_a_load_ends_when_a_replica_runs_and_when_a_oneshot_completed(kind: str, status: str, reached: bool) -> None:
    assert is_reached({"class": kind, "status": status}) is reached


def request(status: str, revision: str = "one", **members: Any) -> LoadRequest:
    """A load request in this status, previewed as this revision."""
    return LoadRequest(
        id=1, status=status, image="image", owner="co_z", preview={"revision": revision, "changes": []}, **members
    )


class Alpha:
    """A session, its node, and a request's map: approves one revision; then the map stands like ``then``.

    What Alpha wrote meanwhile (``news``) is not here before the node has caught up.
    """

    def __init__(self, accepted: str, then: LoadRequest) -> None:
        self.accepted = accepted
        self.then = then
        self.map = request("requires-approval")
        self.news = request("requires-approval", accepted)
        self.node = self
        self.seen: list[str] = []

    async def decide(self, seen: LoadRequest) -> None:
        """Note what the operator saw."""
        self.seen.append((seen.preview or {})["revision"])

    async def catch_up(self) -> None:
        """Bring the news."""
        self.map = self.news

    async def call(self, _method: str, body: dict[str, Any]) -> None:
        """Approve."""
        if body["revision"] != self.accepted:
            raise Conflict("the world moved")
        self.map = self.then

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[Any]:
        """The map's state, once."""

        async def states() -> AsyncIterator[Any]:
            yield type("State", (), {"as_dict": lambda _self: self.map.document()})()

        yield states()

    async def approve(self, seen: LoadRequest) -> LoadRequest:
        """Approve what was seen."""
        return await approve(self, self, seen, self.decide, lambda _line: None)


async def test_what_the_world_has_moved_is_shown_to_the_operator_before_it_is_approved() -> None:
    alpha = Alpha("two", request("approved", "two", version=7))
    assert (await alpha.approve(request("requires-approval"))).version == 7
    assert alpha.seen == ["one", "two"]


async def test_what_somebody_else_decided_is_told_and_not_asked_again() -> None:
    alpha = Alpha("two", request("approved", "two", version=7))
    alpha.news = request("rejected", rejection_reason="not today")
    with pytest.raises(Conflict, match="load request 1 was rejected by somebody else: not today"):
        await alpha.approve(request("requires-approval"))
    assert alpha.seen == ["one"]


async def test_nothing_is_approved_that_the_operator_declines() -> None:
    alpha = Alpha("one", request("approved", version=7))

    async def decline(_seen: LoadRequest) -> None:
        raise ResideError("no")

    alpha.decide = decline
    with pytest.raises(ResideError, match="no"):
        await alpha.approve(request("requires-approval"))
    assert alpha.map.status == "requires-approval"


async def test_an_approved_request_that_can_not_be_carried_out_is_told_with_its_reason() -> None:
    alpha = Alpha("one", request("invalid", error_message="the name caller was taken meanwhile"))
    with pytest.raises(LoadRefused, match="load request 1 is invalid: the name caller was taken meanwhile"):
        await alpha.approve(request("requires-approval"))
