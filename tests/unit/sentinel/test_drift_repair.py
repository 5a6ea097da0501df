"""Drift repair with a cluster in memory: what is repaired, what is left alone, and the limit of repeated repairs."""

import asyncio
import threading
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from support.eventually import eventually

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL, TEARDOWN_MARKER
from reside.model.errors import NotReady
from reside.model.kinds import KINDS
from reside.model.stacks import DesiredStack
from reside.sentinel.errors import ClusterRefused, ClusterUnavailable
from reside.sentinel.guard import findings, verifications
from reside.sentinel.guard.authority import Authority
from reside.sentinel.guard.cache import ObjectCache
from reside.sentinel.guard.repairer import DriftRepairer
from reside.sentinel.store import stacks as storing
from reside.sentinel.store.stacks import StackStore, StoredStack
from reside.sentinel.store.vault import Vault
from reside.sentinel.store.verified import VerifiedStates

pytestmark = pytest.mark.anyio
OURS = {MANAGED_BY_LABEL: FIELD_MANAGER}
A = "ConfigMap/a"


def config_map(name: str, value: str = "1") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": OURS}, "data": {"v": value}}


@dataclass
class DictApi:
    """The part of `KubernetesApi` that the repairer uses; applied objects appear in the cache, as through a watch."""

    cache: ObjectCache
    namespace: str = "test"
    applied: list[str] = field(default_factory=list)
    refuse: bool = False
    away: int = 0
    """Number of further requests that fail because the API server is unreachable."""
    unlabelled: dict[str, dict[str, Any]] = field(default_factory=dict)
    after_apply: Any = None

    async def get(self, key: str) -> dict[str, Any] | None:
        """Return an object that is live without our label."""
        return self.unlabelled.get(key)

    async def apply(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Record the object as live."""
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

    async def set_managers(self, live: dict[str, Any], entries: list[dict[str, Any]]) -> dict[str, Any]:
        """Raise, because no call is expected."""
        raise AssertionError("nobody's fields are to be taken over here")


@dataclass
class Setup:
    """A repairer and what it works with."""

    cache: ObjectCache
    authority: Authority
    store: StackStore
    api: DictApi
    repairer: DriftRepairer

    def delete(self, key: str) -> None:
        """Record a deletion as a watch does."""
        live = self.cache.get(key)
        assert live is not None
        self.cache.note("DELETED", live)


@asynccontextmanager
async def new_setup(
    folder: Path, stored: StoredStack, *, lead: bool = True, live: Collection[dict[str, Any]] = ()
) -> AsyncIterator[Setup]:
    store = StackStore(folder / "stacks")
    store.save(stored)
    cache, authority = ObjectCache(), Authority()
    api = DictApi(cache)
    vault = Vault(folder / "vault", SecretStr("x"))
    repairer = DriftRepairer(api, cache, store, vault, authority)  # type: ignore[arg-type]  # a fake
    runners = [asyncio.create_task(repairer.run()), asyncio.create_task(repairer.verified.run())]
    if lead:
        authority.lead()
    for kind in KINDS:
        await cache.load(kind, [each for each in live if each["kind"] == kind.kind])
    try:
        async with asyncio.timeout(60):
            await repairer.settled()
            yield Setup(cache, authority, store, api, repairer)
    finally:
        for runner in runners:
            runner.cancel()


def stored(*objects: dict[str, Any]) -> StoredStack:
    return StoredStack("demo", "co_zowner").after_apply(DesiredStack("demo", "co_zowner", objects))


async def test_what_is_missing_at_the_first_list_is_created_and_then_left_alone(tmp_path: Path) -> None:
    async with new_setup(tmp_path, stored(config_map("a"))) as setup:
        assert setup.api.applied == [A]
        setup.repairer.examine_all()
        await setup.repairer.settled()
        assert setup.api.applied == [A]


async def test_a_change_is_reverted_by_the_leader_only(tmp_path: Path) -> None:
    async with new_setup(tmp_path, stored(config_map("a")), lead=False) as setup:
        changed = config_map("a", "2")
        setup.cache.note("MODIFIED", changed)
        await setup.repairer.settled()
        assert setup.cache.get(A) == changed
        setup.authority.lead()
        await setup.repairer.settled()
        assert (setup.cache.get(A) or {})["data"] == {"v": "1"}


async def test_what_a_long_first_list_shows_is_reverted_at_its_end(tmp_path: Path) -> None:
    live = [versioned("a", "7", "2"), *(versioned(f"other-{number}", "7") for number in range(1000))]
    async with new_setup(tmp_path, stored(config_map("a"), config_map("b")), live=live) as setup:
        assert sorted(setup.api.applied) == [A, "ConfigMap/b"]
        assert (setup.cache.get(A) or {})["data"] == {"v": "1"}


async def test_a_stack_is_not_repaired_while_the_engine_applies_it(tmp_path: Path) -> None:
    async with new_setup(tmp_path, stored(config_map("a"))) as setup:
        with setup.repairer.suspended("demo"):
            setup.delete(A)
            await setup.repairer.settled()
            assert setup.cache.get(A) is None
        await setup.repairer.settled()
        assert setup.cache.get(A) is not None


def versioned(name: str, version: str, value: str = "1") -> dict[str, Any]:
    found = config_map(name, value)
    return {**found, "metadata": {**found["metadata"], "resourceVersion": version}}


@pytest.mark.parametrize("late", [False, True], ids=["before its end", "after its end"])
async def test_what_the_engine_wrote_is_not_applied_again(tmp_path: Path, *, late: bool) -> None:
    """The watch shows it before or after the end of the operation. A status that changes meanwhile does not matter."""
    async with new_setup(tmp_path, stored(config_map("a"))) as setup:
        repaired = findings.REPAIRS.labels("ConfigMap", "apply")._value.get()
        setup.api.applied.clear()
        with setup.repairer.suspended("demo", [A]) as written:
            setup.store.save(stored(config_map("a", "2")))
            if not late:
                setup.cache.note("MODIFIED", versioned("a", "7", "2"))
                setup.cache.note("MODIFIED", {**versioned("a", "8", "2"), "status": {"x": 1}})
            written[A] = "7"
        await setup.repairer.settled()
        if late:
            setup.cache.note("MODIFIED", versioned("a", "6", "1"))
            await setup.repairer.settled()
            setup.cache.note("MODIFIED", versioned("a", "7", "2"))
        setup.repairer.examine_all()
        await setup.repairer.settled()
        assert setup.api.applied == []
        assert findings.REPAIRS.labels("ConfigMap", "apply")._value.get() == repaired
        setup.cache.note("MODIFIED", versioned("a", "9", "drift"))
        await setup.repairer.settled()
        assert setup.api.applied == [A]


@pytest.mark.parametrize("shown", [versioned("a", "9", "2"), None], ids=["changed", "deleted"])
async def test_what_was_written_after_the_engine_is_repaired(tmp_path: Path, shown: dict[str, Any] | None) -> None:
    """A list shows the later state only, without the one that the engine wrote."""
    async with new_setup(tmp_path, stored(config_map("a"))) as setup:
        setup.api.applied.clear()
        with setup.repairer.suspended("demo", [A]) as written:
            setup.store.save(stored(config_map("a", "2")))
            written[A] = "7"
        await setup.repairer.settled()
        assert setup.api.applied == [], "the watch is behind"
        if shown is None:
            setup.delete(A)
        else:
            setup.cache.note("MODIFIED", shown)
        await setup.repairer.settled()
        assert setup.api.applied == [A]


async def test_an_apply_that_changed_nothing_needs_no_event(tmp_path: Path) -> None:
    async with new_setup(tmp_path, stored(config_map("a"))) as setup:
        setup.cache.note("MODIFIED", versioned("a", "7"))
        await setup.repairer.settled()
        setup.api.applied.clear()
        with setup.repairer.suspended("demo", [A]) as written:
            written[A] = "7"
        await setup.repairer.settled()
        assert setup.api.applied == []
        setup.cache.note("MODIFIED", versioned("a", "8", "drift"))
        await setup.repairer.settled()
        assert setup.api.applied == [A]


async def test_changes_of_a_failed_apply_are_not_reverted_but_missing_objects_are_restored(tmp_path: Path) -> None:
    before = stored(config_map("a"), config_map("gone"))
    failed = before.during_apply(DesiredStack("demo", "co_zowner", (config_map("a", "2"),)))
    async with new_setup(tmp_path, failed) as setup:
        assert setup.api.applied == [A]
        setup.cache.note("MODIFIED", config_map("a", "2"))
        await setup.repairer.settled()
        assert setup.api.applied == [A]


async def test_repeated_changes_by_a_controller_are_reverted_with_back_off(tmp_path: Path) -> None:
    async with new_setup(tmp_path, stored(config_map("a"))) as setup:
        setup.api.after_apply = lambda _: setup.cache.note("MODIFIED", config_map("a", f"x{len(setup.api.applied)}"))
        setup.cache.note("MODIFIED", config_map("a", "first"))
        # the first five repairs are immediate, the sixth waits for its back-off
        await eventually("five repairs", lambda: setup.api.applied, lambda applied: len(applied) >= 5)
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(setup.api.applied) <= 6


async def test_a_failed_repair_is_a_known_problem_until_it_succeeds(tmp_path: Path) -> None:
    async with new_setup(tmp_path, stored(config_map("a"))) as setup:
        told: list[str] = []
        setup.repairer.listen(told.append)
        setup.api.refuse = True
        setup.delete(A)
        await eventually("a problem", lambda: setup.repairer.problems, lambda found: A in found)
        assert "no" in setup.repairer.problems[A]
        setup.api.refuse = False
        setup.repairer.examine_all()
        await eventually("no problem", lambda: setup.repairer.problems, lambda found: not found)
        assert setup.cache.get(A) is not None
        assert set(told) == {A}


async def test_nothing_is_restored_while_the_cluster_is_being_destroyed(tmp_path: Path) -> None:
    async with new_setup(tmp_path, stored(config_map("a"))) as setup:
        setup.cache.note("ADDED", config_map(TEARDOWN_MARKER.partition("/")[2]))
        setup.delete(A)
        await setup.repairer.settled()
        assert setup.cache.get(A) is None


async def test_a_starting_sentinel_restores_what_the_leader_wrote_last(tmp_path: Path) -> None:
    """Another Sentinel may have written to the volume since this one read it."""
    async with new_setup(tmp_path, stored(config_map("a")), lead=False) as setup:
        StackStore(tmp_path / "stacks").save(stored(config_map("a", "newer")))
        setup.delete(A)
        await setup.repairer.settled()
        assert (setup.cache.get(A) or {})["data"] == {"v": "newer"}


async def test_a_job_that_was_deleted_just_after_its_end_is_not_run_again(tmp_path: Path) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "labels": OURS}, "spec": {}}
    async with new_setup(tmp_path, stored(job)) as setup:
        done = {**job, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
        setup.cache.note("DELETED", done)
        await setup.repairer.settled()
        assert setup.cache.get("Job/j") is None
        assert replace(setup.store.stacks["demo"]).finished.keys() == {"Job/j"}


async def test_the_end_of_a_job_is_added_to_what_the_leader_wrote_last(tmp_path: Path) -> None:
    """A starting Sentinel records it, too, as there may be no leader; it must not restore an older stack."""
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "labels": OURS}, "spec": {}}
    async with new_setup(tmp_path, stored(config_map("a"), job), lead=False) as setup:
        StackStore(tmp_path / "stacks").save(stored(config_map("a", "newer"), job))
        setup.cache.note("MODIFIED", {**job, "status": {"conditions": [{"type": "Complete", "status": "True"}]}})
        await setup.repairer.settled()
        kept = StackStore(tmp_path / "stacks").stacks["demo"]
        assert kept.finished.keys() == {"Job/j"}
        assert kept.by_key()[A]["data"] == {"v": "newer"}


async def test_the_end_of_a_job_is_stored_outside_of_the_event_loop_and_again_until_it_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "labels": OURS}, "spec": {}}
    async with new_setup(tmp_path, stored(job)) as setup:
        real, writers = storing.write_file, list[threading.Thread]()

        def write_file(path: Path, content: bytes) -> None:
            writers.append(threading.current_thread())
            if len(writers) == 1:
                raise NotReady("the volume is full")
            real(path, content)

        monkeypatch.setattr(storing, "write_file", write_file)
        setup.cache.note("DELETED", {**job, "status": {"conditions": [{"type": "Complete", "status": "True"}]}})
        assert setup.store.stacks["demo"].finished.keys() == {"Job/j"}
        assert writers == []
        await eventually("the file", lambda: StackStore(tmp_path / "stacks").stacks["demo"].finished)
        assert len(writers) == 2
        assert threading.main_thread() not in writers
        assert setup.cache.get("Job/j") is None


async def test_a_reload_makes_only_the_stacks_anew_that_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with new_setup(tmp_path, stored(config_map("a"))) as setup:
        other = DesiredStack("other", "co_zowner", (config_map("b"),))
        setup.store.save(StoredStack("other", "co_zowner").after_apply(other))
        made: list[str] = []
        real = setup.repairer._stack
        monkeypatch.setattr(setup.repairer, "_stack", lambda found: (made.append(found.name), real(found))[1])
        setup.repairer.reload()
        assert made == ["other"]
        setup.repairer.reload()
        assert made == ["other"]
        setup.store.remove("other")
        setup.repairer.reload()
        assert setup.repairer._keys.keys() == {"demo"}
        setup.delete(A)
        await setup.repairer.settled()
        assert setup.cache.objects.keys() == {A}


@pytest.fixture
def _save_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifications, "_SAVE_AFTER_S", 0.0)


@pytest.mark.usefixtures("_save_at_once")
async def test_a_new_process_asks_the_api_server_only_about_what_is_not_known_to_be_right(tmp_path: Path) -> None:
    secret = {**config_map("s"), "kind": "Secret", "data": {"v": "c2VjcmV0"}}
    desired = stored(config_map("a"), config_map("b"), config_map("c"), secret)
    files = tmp_path / "verified"
    async with new_setup(tmp_path, desired) as setup:
        assert len(setup.api.applied) == 4
        await eventually("the file", lambda: list(files.glob("demo.verified")))
        await setup.repairer.verified.queue.wait_idle()
        live = [dict(each) for each in setup.cache.objects.values()]
    content = (files / "demo.verified").read_bytes()
    assert b"ConfigMap" not in content
    async with new_setup(tmp_path, desired, live=live) as setup:
        assert setup.api.applied == []
        await setup.repairer.verified.queue.wait_idle()
    changed = [each if each["metadata"]["name"] != "b" else config_map("b", "other") for each in live]
    async with new_setup(tmp_path, desired, live=changed) as setup:
        assert setup.api.applied == ["ConfigMap/b"]
        await setup.repairer.verified.queue.wait_idle()
    newer = stored(config_map("a", "newer"), config_map("b"), config_map("c"), secret)
    async with new_setup(tmp_path, newer, live=live) as setup:
        assert setup.api.applied == ["ConfigMap/a"]
        await setup.repairer.verified.queue.wait_idle()
    (files / "demo.verified").write_bytes(content[:40])
    async with new_setup(tmp_path, desired, live=live) as setup:
        assert len(setup.api.applied) == 4


@pytest.mark.usefixtures("_save_at_once")
async def test_the_next_leader_knows_what_the_last_one_verified(tmp_path: Path) -> None:
    async with new_setup(tmp_path, stored(config_map("a")), lead=False) as follower:
        async with new_setup(tmp_path, stored(config_map("a"))) as leader:
            await leader.repairer.verified.queue.wait_idle()
            live = leader.cache.get(A)
        assert live is not None
        follower.api.applied.clear()
        follower.cache.note("MODIFIED", live)
        follower.repairer.reload()
        follower.authority.lead()
        await follower.repairer.settled()
        assert follower.api.applied == []


@pytest.mark.usefixtures("_save_at_once")
async def test_nothing_stays_of_the_verified_states_of_a_stack_that_was_removed(tmp_path: Path) -> None:
    file = tmp_path / "verified" / "demo.verified"
    async with new_setup(tmp_path, stored(config_map("a"))) as setup:
        await setup.repairer.verified.queue.wait_idle()
        assert file.exists()
        setup.store.remove("demo")
        setup.repairer.update("demo")
        await setup.repairer.verified.queue.wait_idle()
        assert not file.exists()
        assert setup.repairer.verified._of == {}
        file.write_bytes(b"of a process that died")
    VerifiedStates(tmp_path / "verified", Vault(tmp_path / "vault", SecretStr("x"))).keep_only({"other"})
    assert not file.exists()


async def test_an_unreachable_api_server_is_not_reported_as_an_error_of_the_object(tmp_path: Path) -> None:
    """It is transient, and a report must not make a replica look broken in the meantime."""
    async with new_setup(tmp_path, stored(config_map("a"))) as setup:
        setup.api.away = 3
        setup.delete(A)
        await eventually("the repair", lambda: setup.cache.get(A))
        assert setup.api.away == 0
        assert not setup.repairer.problems
