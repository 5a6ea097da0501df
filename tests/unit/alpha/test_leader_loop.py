"""The leader's loop: concurrent handling of two keys, and when a load request is open."""

from __future__ import annotations

from typing import Any

import pytest

from reside.alpha.loop import Loop
from reside.alpha.sentinel_client import SentinelClient
from reside.model import sentinel_data
from reside.model.entities import LoadRequest

pytestmark = pytest.mark.anyio


class Map(dict[str, Any]):
    """A map of the Sentinel's."""

    def __init__(self, co_id: str, members: dict[str, Any]) -> None:
        super().__init__(members)
        self.id = co_id

    def on_change(self, _changed: Any) -> Any:
        """Return a function without effect; the map never changes."""
        return lambda: None


class FakeAlpha:
    """The parts of Alpha, its context, its node and the Sentinel that the loop uses when it follows reports."""

    def __init__(self) -> None:
        self.context = self.node = self
        self.sentinel = SentinelClient(self, self)
        self.loaded: list[str] = []
        self.meanwhile = lambda: None

    async def peers(self, _contract: str) -> list[FakeAlpha]:
        """Return the Sentinel."""
        return [self]

    async def data(self) -> Map:
        """Return the root of the Sentinel's data."""
        return Map("root", {name: name for maps in sentinel_data.MAPS_BY_GROUP.values() for name in maps})

    async def load_map(self, co_id: str) -> Map:
        """Return a map; call `meanwhile` if it is a report."""
        self.loaded.append(co_id)
        if co_id.startswith("report."):
            self.meanwhile()
        return Map(co_id, {"first": "report.first", "second": "report.second"} if co_id == "reports" else {})


async def test_a_replica_that_a_scan_finds_while_reports_are_followed_does_not_end_the_term() -> None:
    alpha = FakeAlpha()
    loop = Loop(alpha)
    loop._unreported.update({"first": 3})
    alpha.meanwhile = lambda: loop._unreported.update({"second": 4})
    await loop._handle("sentinel")
    assert "report.first" in alpha.loaded
    await loop._handle("sentinel")
    assert "report.second" in alpha.loaded


@pytest.mark.parametrize(
    ("status", "version", "is_open"),
    [
        ("validating", None, True),
        ("requires-approval", None, True),
        ("approved", None, True),
        ("approved", 1, False),
        ("invalid", None, False),
        ("rejected", None, False),
    ],
)
def test_a_request_is_open_until_nothing_follows(status: str, version: int | None, is_open: bool) -> None:
    members = {"id": 1, "status": status, "image": "i", "owner": "o", "version": version}
    assert LoadRequest.model_validate(members).is_open is is_open
