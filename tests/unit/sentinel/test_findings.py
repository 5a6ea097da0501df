"""What was found of an object is forgotten in time, also if several things are forgotten at different times."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from support.eventually import eventually

from reside.sentinel.guard import reverts
from reside.sentinel.guard.findings import Findings
from reside.sentinel.objects.managed_fields import Managed

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.anyio
KEY = "Deployment/web"
REPLICAS = Managed("kubectl-edit", ("f:spec", "f:replicas"))
IMAGE = Managed("other", ("f:spec", "f:image"))


class Api:
    """Takes no events: these tests tell none."""

    namespace = "test"

    async def put_event(self, event: dict[str, Any]) -> None:
        """Refuse an event."""
        raise AssertionError(event)


@pytest.fixture
def announced() -> list[str]:
    return []


@pytest.fixture
def findings(announced: list[str]) -> Iterator[Findings]:
    found = Findings(Api(), announced.append)
    yield found
    assert len(found._timers) <= 1


def note(findings: Findings, culprit: Managed, at: float) -> None:
    findings._reverts.note(KEY, [culprit], at)
    findings._await_end(KEY)


async def test_a_change_is_forgotten_although_another_one_is_forgotten_before(
    findings: Findings, announced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reverts, "KEPT_S", 0.05)
    now = asyncio.get_running_loop().time()
    note(findings, REPLICAS, now)
    note(findings, IMAGE, now + 0.2)
    await eventually("both are forgotten", lambda: findings.reverted(KEY) == ())
    assert announced[-1] == KEY
    assert not findings._timers


async def test_an_object_that_is_changed_back_again_and_again_has_one_timer(findings: Findings) -> None:
    now = asyncio.get_running_loop().time()
    for number in range(100):
        note(findings, REPLICAS, now + number)
    assert list(findings._timers) == [KEY]
    findings.forget(KEY)
    assert not findings._timers
