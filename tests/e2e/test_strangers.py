"""Strangers attack every value of the platform at once: replicas are loaded and updated all the same."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio.to_thread import run_sync
from e2e.administrator import address
from interop.strangers.attacking import GUESSED, attacking
from support.jazz_history import History

from reside.model import lookup

if TYPE_CHECKING:
    from pathlib import Path

    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)

_OF_PLATFORM = 240
"""The first values, of the bootstrap, which are attacked beside those of the replica that is updated. Those between are
of replicas that other tests have loaded, and a round would take minutes with them."""


def test_a_load_and_an_update_succeed_under_all_attacks(platform: Platform, tmp_path: Path) -> None:
    first = platform.build("examples/replicas/greeter", "v1")
    images = {name: platform.build(f"examples/replicas/{name}", "v2") for name in ("greeter-v2", "report")}
    before = [item.value for item in History(platform.jazz_database()).transactions]
    platform.load(first, "--name", "besieged")
    number = str(platform.replicas()["besieged"]["id"])
    known = History(platform.jazz_database()).transactions
    found = dict.fromkeys(item.value for item in known)
    values = dict.fromkeys([*list(found)[:_OF_PLATFORM], *(found.keys() - before)])
    groups = dict.fromkeys(item.value for item in known if item.owner is None and item.value in values)

    async def scenario() -> None:
        async with attacking(
            f"ws://{address(platform, 'jazz', 4200)}",
            values=values,
            groups=groups,
            names=[*GUESSED, lookup.replica_by_name("besieged-report")],
            folder=tmp_path,
        ) as attack:
            await attack.round()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run_sync, partial(platform.load, images["greeter-v2"], "--replica-id", number))
                tasks.start_soon(run_sync, partial(platform.load, images["report"], "--name", "besieged-report"))
            assert attack.is_running

    anyio.run(scenario)
    rows = platform.replicas()
    assert (rows["besieged"]["version"], rows["besieged"]["status"]) == (2, "running")
    assert rows["besieged-report"]["status"] in ("running", "completed")
