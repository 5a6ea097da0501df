"""Drift repair with a cluster in memory: what is repaired, what is left alone, and the limit of repeated repairs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from support.eventually import eventually

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL, TEARDOWN_MARKER
from reside.model.kinds import KINDS
from reside.model.stacks import DesiredStack
from reside.sentinel.errors import ClusterRefused, ClusterUnavailable
from reside.sentinel.guard.authority import Authority
from reside.sentinel.guard.cache import ObjectCache
from reside.sentinel.guard.repairer import DriftRepairer
from reside.sentinel.store.stacks import StackStore, StoredStack
from reside.sentinel.store.vault import Vault

pytestmark = pytest.mark.anyio
OURS = {MANAGED_BY_LABEL: FIELD_MANAGER}
A = "ConfigMap/a"


def config_map(name: str, value: str = "1") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": OURS}, "data": {"v": value}}


@dataclass
class DictApi:
    """The part of ``KubernetesApi`` that the repairer uses; what it applies shows in the cache, as a watch would."""

    cache: ObjectCache
    namespace: str = "test"
    applied: list[str] = field(default_factory=list)
    refuse: bool = False
    away: int = 0
    """How many further requests find no API server."""
    unlabelled: dict[str, dict[str, Any]] = field(default_factory=dict)
    after_apply: Any = None

    async def get(self, key: str) -> dict[str, Any] | None:
        """Return an object that is live without our label."""
        return self.unlabelled.get(key)

    async def apply(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Note the manifest as live."""
        key = f"{manifest['kind']}/{manifest['metadata']['name']}"
        if self.away:
            self.away -= 1
            raise ClusterUnavailable(f"apply {key}: nobody answers")
        if self.refuse:
            raise ClusterRefused(f"apply {key}: no", 403)
        self.applied.append(key)
        self.cache.note("MODIFIED", manifest)
        if self.after_apply:
            self.after_apply(manifest)
        return manifest

    async def set_managers(self, live: dict[str, Any], entries: list[dict[str, Any]]) -> None:
        """Not expected."""
        raise AssertionError("nobody's fields are to be taken over here")


@dataclass
class Stage:
    """A repairer and what it works with."""

    cache: ObjectCache
    authority: Authority
    store: StackStore
    api: DictApi
    repairer: DriftRepairer

    def delete(self, key: str) -> None:
        """Note a deletion as a watch does."""
        live = self.cache.get(key)
        assert live is not None
        self.cache.note("DELETED", live)


@asynccontextmanager
async def stage(folder: Path, stored: StoredStack, *, lead: bool = True) -> AsyncIterator[Stage]:
    store = StackStore(folder / "stacks")
    store.save(stored)
    cache, authority = ObjectCache(), Authority()
    api = DictApi(cache)
    repairer = DriftRepairer(api, cache, store, Vault(folder / "vault", SecretStr("x")), authority)  # type: ignore[arg-type]  # a fake
    runner = asyncio.create_task(repairer.run())
    if lead:
        authority.lead()
    for kind in KINDS:
        cache.replace(kind, [])
    try:
        async with asyncio.timeout(20):
            await repairer.settled()
            yield Stage(cache, authority, store, api, repairer)
    finally:
        runner.cancel()


def stored(*objects: dict[str, Any]) -> StoredStack:
    return StoredStack("demo", "co_zowner").after_apply(DesiredStack("demo", "co_zowner", objects))


async def test_what_is_missing_at_the_first_list_is_created_and_then_left_alone(tmp_path: Path) -> None:
    async with stage(tmp_path, stored(config_map("a"))) as on:
        assert on.api.applied == [A]
        on.repairer.examine_all()
        await on.repairer.settled()
        assert on.api.applied == [A]


async def test_a_change_is_reverted_by_the_leader_only(tmp_path: Path) -> None:
    async with stage(tmp_path, stored(config_map("a")), lead=False) as on:
        changed = config_map("a", "2")
        on.cache.note("MODIFIED", changed)
        await on.repairer.settled()
        assert on.cache.get(A) is changed
        on.authority.lead()
        await on.repairer.settled()
        assert (on.cache.get(A) or {})["data"] == {"v": "1"}


async def test_a_stack_in_the_engines_hands_is_left_alone_until_it_gives_it_back(tmp_path: Path) -> None:
    async with stage(tmp_path, stored(config_map("a"))) as on:
        with on.repairer.suspended("demo"):
            on.delete(A)
            await on.repairer.settled()
            assert on.cache.get(A) is None
        await on.repairer.settled()
        assert on.cache.get(A) is not None


async def test_what_a_failed_apply_has_changed_is_not_turned_back_but_restored_when_missing(tmp_path: Path) -> None:
    before = stored(config_map("a"), config_map("gone"))
    failed = before.during_apply(DesiredStack("demo", "co_zowner", (config_map("a", "2"),)))
    async with stage(tmp_path, failed) as on:
        assert on.api.applied == [A]
        on.cache.note("MODIFIED", config_map("a", "2"))
        await on.repairer.settled()
        assert on.api.applied == [A]


async def test_a_controller_that_fights_is_answered_ever_more_slowly(tmp_path: Path) -> None:
    async with stage(tmp_path, stored(config_map("a"))) as on:
        on.api.after_apply = lambda _: on.cache.note("MODIFIED", config_map("a", f"x{len(on.api.applied)}"))
        on.cache.note("MODIFIED", config_map("a", "first"))
        # the first five repairs are immediate, the sixth waits for its back-off
        await eventually("five repairs", lambda: on.api.applied, lambda applied: len(applied) >= 5)
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(on.api.applied) <= 6


async def test_a_failed_repair_is_a_known_problem_until_it_succeeds(tmp_path: Path) -> None:
    async with stage(tmp_path, stored(config_map("a"))) as on:
        told: list[str] = []
        on.repairer.listen(told.append)
        on.api.refuse = True
        on.delete(A)
        await eventually("a problem", lambda: on.repairer.problems, lambda found: A in found)
        assert "no" in on.repairer.problems[A]
        on.api.refuse = False
        on.repairer.examine_all()
        await eventually("no problem", lambda: on.repairer.problems, lambda found: not found)
        assert on.cache.get(A) is not None
        assert set(told) == {A}


async def test_nothing_is_restored_while_the_cluster_is_being_destroyed(tmp_path: Path) -> None:
    async with stage(tmp_path, stored(config_map("a"))) as on:
        on.cache.note("ADDED", config_map(TEARDOWN_MARKER.partition("/")[2]))
        on.delete(A)
        await on.repairer.settled()
        assert on.cache.get(A) is None


async def test_one_that_starts_restores_what_the_leader_wrote_last(tmp_path: Path) -> None:
    """Another Sentinel may have written to the volume since this one read it."""
    async with stage(tmp_path, stored(config_map("a")), lead=False) as on:
        StackStore(tmp_path / "stacks").save(stored(config_map("a", "newer")))
        on.delete(A)
        await on.repairer.settled()
        assert (on.cache.get(A) or {})["data"] == {"v": "newer"}


async def test_a_job_that_was_deleted_just_after_its_end_is_not_run_again(tmp_path: Path) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "labels": OURS}, "spec": {}}
    async with stage(tmp_path, stored(job)) as on:
        done = {**job, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
        on.cache.note("DELETED", done)
        await on.repairer.settled()
        assert on.cache.get("Job/j") is None
        assert replace(on.store.stacks["demo"]).finished.keys() == {"Job/j"}


async def test_the_end_of_a_job_is_noted_beside_what_the_leader_wrote_last(tmp_path: Path) -> None:
    """A starting Sentinel records it, too, as there may be no leader; it must not restore an older stack."""
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "labels": OURS}, "spec": {}}
    async with stage(tmp_path, stored(config_map("a"), job), lead=False) as on:
        StackStore(tmp_path / "stacks").save(stored(config_map("a", "newer"), job))
        on.cache.note("MODIFIED", {**job, "status": {"conditions": [{"type": "Complete", "status": "True"}]}})
        kept = StackStore(tmp_path / "stacks").stacks["demo"]
        assert kept.finished.keys() == {"Job/j"}
        assert kept.by_key()[A]["data"] == {"v": "newer"}


async def test_an_api_server_that_is_away_is_no_problem_of_the_object(tmp_path: Path) -> None:
    """It passes by itself, and a report must not make a replica look broken meanwhile."""
    async with stage(tmp_path, stored(config_map("a"))) as on:
        on.api.away = 3
        on.delete(A)
        await eventually("the repair", lambda: on.cache.get(A))
        assert on.api.away == 0
        assert not on.repairer.problems
