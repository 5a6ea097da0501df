"""How many stacks, and how many previews, the engine works on in parallel is a setting."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr, ValidationError
from support.sentinel_fleet import Fleet

from reside.jazz import Credentials, Node
from reside.jazz.server import SyncServer
from reside.sentinel.app import pulumi_engine
from reside.sentinel.settings import LANES_PER_CORE, SentinelSettings
from reside.sentinel.term.context import LaneCounts

if TYPE_CHECKING:
    from reside.sentinel.engine import ChangeSet, StackSpec

WITHIN_S = 60.0


def settings(folder: Path = Path("/nowhere")) -> SentinelSettings:
    """Return settings with the required members; all others are those of the environment."""
    return SentinelSettings(
        replica_name="kubernetes-sentinel",
        control_block_id="co_zblock",
        account_id="co_zaccount",
        agent_secret=SecretStr("secret"),
        sync_server_url="ws://jazz:4200",
        etcd_hosts=("http://etcd:2379",),
        namespace="reside",
        state_dir=folder,
        engine_passphrase=SecretStr("a passphrase"),
    )


def test_without_settings_there_are_two_lanes_for_each_core(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RESIDE_LANES", "RESIDE_PREVIEW_LANES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2, 5})
    assert LANES_PER_CORE == 2
    assert (settings().lanes, settings().preview_lanes) == (6, 6)


def test_the_engine_runs_as_many_operations_as_there_are_lanes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RESIDE_LANES", "5")
    monkeypatch.setenv("RESIDE_PREVIEW_LANES", "3")
    chosen = settings(tmp_path)
    engine: Any = pulumi_engine(chosen)
    assert (chosen.lanes, chosen.preview_lanes, engine._settings.parallel) == (5, 3, 8)


@pytest.mark.parametrize("name", ["RESIDE_LANES", "RESIDE_PREVIEW_LANES"])
@pytest.mark.parametrize("value", ["0", "-1", "257", "many"])
def test_a_number_of_lanes_that_makes_no_sense_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError, match="lanes"):
        settings()


@pytest.mark.anyio
@pytest.mark.parametrize("lanes", [1, 3])
async def test_a_term_applies_as_many_stacks_in_parallel_as_it_has_lanes(tmp_path: Path, lanes: int) -> None:
    async with SyncServer() as server, Node(server.url, Credentials.generate()) as node:
        await node.register("sentinel")
        fleet = Fleet(node, tmp_path, lanes=LaneCounts(stacks=lanes, previews=1))
        apply, running, most = fleet.engine.apply, 0, 0
        full = asyncio.Event()

        async def counted(stack: StackSpec) -> ChangeSet:
            nonlocal running, most
            running += 1
            most = max(most, running)
            if running == lanes:
                full.set()
            await full.wait()  # each waits until as many as allowed run, so fewer would wait for ever
            await asyncio.sleep(0)
            running -= 1
            done: ChangeSet = await apply(stack)
            return done

        fleet.engine.apply = counted
        for number in range(6):
            fleet.declare(f"s{number}")
        async with asyncio.timeout(WITHIN_S), fleet.running():
            assert most == lanes
            assert len(fleet.engine.applied) == 6
