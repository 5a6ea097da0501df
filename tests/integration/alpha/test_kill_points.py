"""Alpha dies or is paused at every write and await of its operations: the next one continues, and nothing is wrong.

The tests print how many points they tried (`-s` shows it).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from integration.alpha.killing import KEPT, LOST, PAUSED, Tried, try_everywhere
from support.alpha_world import run_world
from support.mortal_parts import Network
from support.reports import report

if TYPE_CHECKING:
    from support.alpha_cluster import Servers

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(2400)]


async def test_the_next_alpha_continues_wherever_one_was_killed(servers: Servers) -> None:
    """Before and after each write, each request to etcd and each wait for an acknowledgement."""
    tried = Tried()
    await try_everywhere(partial(run_world, servers, Network), tried)
    report(str(tried))
    assert tried.total >= 300
    assert {manner for _, manner in tried.points} == {KEPT, LOST}


async def test_an_alpha_that_was_paused_changes_nothing_when_it_continues(servers: Servers) -> None:
    """It sent what it had written before the pause: two load requests got one id."""
    tried = Tried()
    await try_everywhere(partial(run_world, servers, Network), tried, pauses=True)
    report(str(tried))
    assert {manner for _, manner in tried.points} == {PAUSED}


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("pauses", [False, True])
async def test_it_holds_at_every_suspension_and_resumption(servers: Servers, *, pauses: bool) -> None:
    """What an operation awaits may have happened or not."""
    tried = Tried()
    await try_everywhere(partial(run_world, servers, Network), tried, pauses=pauses, every=True)
    report(str(tried))
