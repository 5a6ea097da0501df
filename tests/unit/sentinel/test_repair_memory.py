"""What a drift repairer keeps on its volume: the ends of Jobs, and which states were verified."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr
from support.eventually import eventually
from unit.sentinel.repair_setup import OURS, A, config_map, new_setup, stored

from reside.model.errors import NotReady
from reside.model.stacks import DesiredStack
from reside.sentinel.guard import verifications
from reside.sentinel.store import stacks as storing
from reside.sentinel.store.stacks import StackStore, StoredStack
from reside.sentinel.store.vault import Vault
from reside.sentinel.store.verified import VerifiedStates

pytestmark = pytest.mark.anyio


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
        desired = setup.repairer._desired
        real = desired._stack
        monkeypatch.setattr(desired, "_stack", lambda found: (made.append(found.name), real(found))[1])
        await setup.repairer.reload()
        assert made == ["other"]
        await setup.repairer.reload()
        assert made == ["other"]
        setup.store.remove("other")
        await setup.repairer.reload()
        assert desired._keys.keys() == {"demo"}
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
        await follower.repairer.reload()
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
