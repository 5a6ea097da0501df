"""The hand-over: which errors of the Sentinel end it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from reside.model.errors import NotReady
from reside.model.stacks import DesiredStack
from reside.seed.handover import ErrorTimer, declared


def test_a_lasting_error_counts_after_a_while() -> None:
    timer = ErrorTimer(40)
    assert [timer.has_expired("quota", now) for now in (100, 139, 140, 141)] == [False, False, True, True]


def test_a_transient_error_does_not_count() -> None:
    timer = ErrorTimer(40)
    reported = [("old", 100), (None, 110), ("old", 145), ("other", 150), ("old", 180), ("old", 219)]
    assert not any(timer.has_expired(error, now) for error, now in reported)


class NotConnectedYet:
    """The client of a Sentinel that Alpha's control block names from the third look on."""

    def __init__(self) -> None:
        self.looks = 0

    async def declare(self, _stack: DesiredStack) -> None:
        """Declare a stack."""
        self.looks += 1
        if self.looks < 3:
            raise NotReady("no Kubernetes Sentinel is connected")


@pytest.mark.anyio
async def test_a_declaration_waits_until_alpha_names_the_sentinel() -> None:
    """The control block of Alpha names none for a moment if an earlier bootstrap was killed."""
    sentinel = NotConnectedYet()
    alpha: Any = SimpleNamespace(sentinel=sentinel, account="co_zAlpha")
    assert await declared(alpha, [], 60.0) == DesiredStack("platform", "co_zAlpha", ()).revision
    assert sentinel.looks == 3
