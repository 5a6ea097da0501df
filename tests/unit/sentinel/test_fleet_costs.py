"""What happens once does not look at everything: counted at many stacks, never timed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL, PLATFORM_STACK, STACK_LABEL
from reside.model.kinds import BY_KIND, KINDS
from reside.model.stacks import DesiredStack
from reside.sentinel.guard import repairer as repairing
from reside.sentinel.guard.authority import Authority
from reside.sentinel.guard.cache import ObjectCache
from reside.sentinel.guard.repairer import DriftRepairer
from reside.sentinel.store import stacks as storing
from reside.sentinel.store.stacks import FILES_AT_ONCE, StackStore, StoredStack
from reside.sentinel.store.vault import Vault

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

pytestmark = pytest.mark.anyio
MANY = 50


def config_map(stack: str) -> dict[str, Any]:
    meta = {"name": stack, "uid": stack, "resourceVersion": "1"}
    labels = {MANAGED_BY_LABEL: FIELD_MANAGER, STACK_LABEL: stack}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**meta, "labels": labels}}


def stored(name: str) -> StoredStack:
    return StoredStack(name, "co_zowner").after_apply(DesiredStack(name, "co_zowner", (config_map(name),)))


@pytest.fixture
def store(tmp_path: Path) -> StackStore:
    kept = StackStore(tmp_path / "stacks")
    for number in range(MANY):
        kept.save(stored(f"s{number}"))
    return kept


async def test_files_are_read_once_and_again_only_if_another_process_wrote_them(
    store: StackStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    real = storing._read
    monkeypatch.setattr(storing, "_read", lambda path: (read.append(path.stem), real(path))[1])
    store.load()
    assert read == []
    other = StackStore(tmp_path / "stacks")
    read.clear()
    other.save(stored("s7"))
    other.remove("s8")
    await store.save_aside(stored("s9"))
    store.load()
    assert read == ["s7"]
    assert "s8" not in store.stacks
    store.load_one("s10")
    assert read == ["s7"]


async def rounds_during(work: Coroutine[Any, Any, None]) -> int:
    """Return in how many rounds of the event loop a coroutine does its work."""
    rounds, loop = 0, asyncio.get_running_loop()

    def count() -> None:
        nonlocal rounds, counting
        rounds += 1
        counting = loop.call_soon(count)

    counting = loop.call_soon(count)
    await work
    counting.cancel()
    return rounds


async def test_a_new_leader_reads_all_stacks_in_several_rounds_of_the_event_loop(
    store: StackStore, tmp_path: Path
) -> None:
    vault = Vault(tmp_path / "vault", SecretStr("x"))
    for number in range(MANY):
        vault.put("co_zowner", f"reference{number}", "value")
    api: Any = type("Api", (), {"namespace": "test"})()
    repairer = DriftRepairer(api, ObjectCache(), store, vault, Authority())
    for part in (store, vault, repairer):
        assert await rounds_during(part.reload()) >= MANY // FILES_AT_ONCE


async def test_a_reload_reads_what_another_process_wrote(store: StackStore, tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault", SecretStr("x"))
    other, other_vault = StackStore(tmp_path / "stacks"), Vault(tmp_path / "vault", SecretStr("x"))
    other.save(stored("new"))
    other.remove("s8")
    other_vault.put("co_zowner", "reference", "value")
    await store.reload()
    await vault.reload()
    assert store.stacks.keys() == other.stacks.keys()
    assert vault.get("co_zowner", "reference") == "value"
    other_vault.keep_only([])
    await vault.reload()
    assert vault.get("co_zowner", "reference") is None


def test_who_holds_an_object_follows_each_change(store: StackStore) -> None:
    assert store.holder("ConfigMap/s3") == "s3"
    store.save(StoredStack("other", "co_zowner").during_apply(DesiredStack("other", "co_zowner", (config_map("s3"),))))
    assert store.holder("ConfigMap/s3") == "s3"
    store.remove("s3")
    assert store.holder("ConfigMap/s3") == "other"
    store.remove("other")
    assert store.holder("ConfigMap/s3") is None


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the objects that the repairer examines, in this order."""
    found: list[str] = []
    real = DriftRepairer._action

    def action(self: DriftRepairer, key: str) -> Any:
        found.append(key)
        return real(self, key)

    monkeypatch.setattr(repairing.DriftRepairer, "_action", action)
    return found


async def test_a_list_of_a_quiet_kind_examines_what_is_missing_and_the_platform_first(
    store: StackStore, tmp_path: Path, examined: list[str]
) -> None:
    store.save(stored(PLATFORM_STACK))
    cache = ObjectCache()
    vault = Vault(tmp_path / "vault", SecretStr("x"))
    api: Any = type("Api", (), {"namespace": "test"})()
    repairer = DriftRepairer(api, cache, store, vault, Authority())
    running = asyncio.create_task(repairer.run())
    for kind in KINDS:
        cache.replace(kind, [config_map(name) for name in store.stacks] if kind.kind == "ConfigMap" else [])
    async with asyncio.timeout(60):
        await repairer.settled()
        assert examined[0] == f"ConfigMap/{PLATFORM_STACK}"
        examined.clear()
        cache.replace(BY_KIND["ConfigMap"], [config_map(name) for name in store.stacks])
        await repairer.settled()
        assert examined == []
    running.cancel()
