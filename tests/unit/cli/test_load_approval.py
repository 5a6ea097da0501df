"""Which load requests are approved, and when a load ends."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import stamina

from reside.cli.loading import approve, create_request, is_finished
from reside.model.entities import HealthPolicy, LoadRequest, LoadRequestSpec
from reside.model.errors import AnswerLost, Conflict, LoadRefused, NotReady, ResideError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _without_pauses() -> Iterator[None]:
    with stamina.set_testing(True, attempts=3):
        yield


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
    assert is_finished({"class": kind, "status": status}, HealthPolicy()) is reached


def request(status: str, revision: str = "one", **members: Any) -> LoadRequest:
    """Return a load request in this status, previewed as this revision."""
    return LoadRequest(
        id=1, status=status, image="image", owner="co_z", preview={"changes": []}, revision=revision, **members
    )


class Alpha:
    """A session, its node, and a request's map: approves one revision; then the map is as in `then`.

    What Alpha wrote in the meantime (`news`) is visible only after the node has synced.
    """

    def __init__(self, accepted: str, then: LoadRequest) -> None:
        self.accepted = accepted
        self.then = then
        self.map = request("requires-approval")
        self.news = request("requires-approval", accepted)
        self.node = self
        self.seen: list[str] = []
        self.bodies: list[dict[str, Any]] = []

    async def decide(self, seen: LoadRequest) -> None:
        """Record what the operator saw."""
        self.seen.append(str(seen.revision))

    async def catch_up(self) -> None:
        """Make the news visible."""
        self.map = self.news

    def as_dict(self) -> dict[str, Any]:
        """Return the map's members."""
        return self.map.document()

    async def call(self, _method: str, body: dict[str, Any]) -> None:
        """Approve."""
        self.bodies.append(body)
        if body["revision"] != self.accepted:
            raise Conflict("cluster state changed")
        self.map = self.then

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[Any]:
        """Yield the map's state, once."""

        async def states() -> AsyncIterator[Any]:
            yield type("State", (), {"as_dict": lambda _self: self.map.document()})()

        yield states()

    async def approve(self, seen: LoadRequest) -> LoadRequest:
        """Approve what was seen."""
        return await approve(self, self, seen, self.decide, lambda _line: None)


async def test_a_preview_that_has_changed_is_shown_to_the_operator_before_approval() -> None:
    alpha = Alpha("two", request("approved", "two", version=7))
    assert (await alpha.approve(request("requires-approval"))).version == 7
    assert alpha.seen == ["one", "two"]


async def test_a_decision_of_another_operator_is_reported_without_a_prompt() -> None:
    alpha = Alpha("two", request("approved", "two", version=7))
    alpha.news = request("rejected", rejection_reason="not today")
    with pytest.raises(Conflict, match="load request 1 was rejected by another operator: not today"):
        await alpha.approve(request("requires-approval"))
    assert alpha.seen == ["one"]


async def test_choices_and_a_name_are_part_of_every_attempt() -> None:
    alpha = Alpha("two", request("approved", "two", version=7))
    asked = {"choices": {"greeting": [4]}, "name": "other"}
    await approve(alpha, alpha, request("requires-approval"), alpha.decide, lambda _: None, asked=asked)
    assert alpha.bodies == [{"id": 1, "revision": revision, **asked} for revision in ("one", "two")]


async def test_a_declined_request_is_not_approved() -> None:
    alpha = Alpha("one", request("approved", version=7))

    async def decline(_seen: LoadRequest) -> None:
        raise ResideError("no")

    alpha.decide = decline
    with pytest.raises(ResideError, match="no"):
        await alpha.approve(request("requires-approval"))
    assert alpha.map.status == "requires-approval"


async def test_an_approved_request_that_fails_is_reported_with_its_reason() -> None:
    alpha = Alpha("one", request("invalid", error_message="the name caller has been taken in the meantime"))
    with pytest.raises(LoadRefused, match="load request 1 is invalid: the name caller has been taken in the meantime"):
        await alpha.approve(request("requires-approval"))


class Restarting(Alpha):
    """An Alpha that ends during the first call, before or after it has approved; `news` is what it wrote."""

    def __init__(self, news: LoadRequest) -> None:
        super().__init__("one", request("approved", version=7))
        self.news = news
        self.calls = 0

    async def call(self, method: str, body: dict[str, Any]) -> None:
        """Lose the first response; the second call returns what was written before."""
        self.calls += 1
        if self.calls == 1:
            raise AnswerLost("alpha did not respond")
        if self.news.status != "requires-approval":
            raise Conflict(f"load request 1 is {self.news.status}")
        await super().call(method, body)


@pytest.mark.parametrize(
    "news",
    [request("requires-approval"), request("approved"), request("approved", version=7)],
    ids=["not carried out", "carried out", "version made"],
)
async def test_an_approval_whose_response_was_lost_is_repeated(news: LoadRequest) -> None:
    alpha = Restarting(news)
    if news.status == "approved":
        alpha.then = news.model_copy(update={"version": 7})
        alpha.news = news.model_copy(update={"version": 7})
    assert (await alpha.approve(request("requires-approval"))).version == 7
    assert (alpha.calls, alpha.seen) == (2, ["one"])


@pytest.mark.parametrize(
    ("news", "message"),
    [
        (request("rejected", rejection_reason="not today"), "was rejected by another operator: not today"),
        (request("approved", "two"), "was approved by another operator"),
    ],
)
async def test_a_decision_of_another_operator_during_an_outage_of_alpha_is_reported(
    news: LoadRequest, message: str
) -> None:
    alpha = Restarting(news)
    with pytest.raises(Conflict, match=message):
        await alpha.approve(request("requires-approval"))
    assert alpha.calls == 2


async def test_approving_ends_after_repeatedly_lost_responses() -> None:
    alpha = Restarting(request("requires-approval"))
    calls = 0

    async def call(_method: str, _body: dict[str, Any]) -> None:
        nonlocal calls
        calls += 1
        raise AnswerLost("alpha did not respond")

    alpha.call = call
    with pytest.raises(NotReady, match="alpha did not respond"):
        await alpha.approve(request("requires-approval"))
    assert calls == 3


class Client:
    """A session, its node, account and group; Alpha's first response is lost."""

    alpha = "co_zAlpha"

    def __init__(self) -> None:
        self.node = self.account = self
        self.id = "co_zSpec"
        self.specs: list[str] = []
        self.private: dict[str, dict[str, str]] = {}
        self.groups = 0

    def create_group(self) -> Client:
        """Return a group."""
        self.groups += 1
        return self

    async def find_unique_map(self, _owner: str, name: str) -> dict[str, str] | None:
        """Return a private map of the account."""
        return self.private.get(name)

    async def unique_map(self, _owner: Client, name: str, members: dict[str, str]) -> dict[str, str]:
        """Create a private map of the account."""
        return self.private.setdefault(name, members)

    async def load_group(self, _co_id: str) -> Client:
        """Return the group."""
        return self

    async def add_member(self, _account: str, _role: str) -> None:
        """Accept Alpha as a reader."""

    def create_map(self, _members: dict[str, Any]) -> Client:
        """Return the request value."""
        return self

    async def flush(self) -> None:
        """Do nothing."""

    async def load_map(self, co_id: str) -> str:
        """Return the load request."""
        return co_id

    async def call(self, _method: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create a load request from the request value, once."""
        self.specs.append(body["wish"])
        if len(self.specs) == 1:
            raise AnswerLost("alpha did not respond")
        return {"id": 4, "loadRequest": "co_zRequest"}


async def test_creating_a_load_request_is_repeated_with_the_same_value_after_a_lost_response() -> None:
    """Alpha creates one load request for each request value, also for repeated calls."""
    client = Client()
    assert await create_request(client, LoadRequestSpec(image="image")) == (4, "co_zRequest")
    assert client.specs == ["co_zSpec", "co_zSpec"]


async def test_the_values_of_an_account_share_a_group() -> None:
    client = Client()
    for _ in range(2):
        await create_request(client, LoadRequestSpec(image="image"))
    assert client.groups == 1
