"""Stored stacks during an apply, reports from desired and live state, and the authority."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL, STACK_LABEL
from reside.model.errors import NotReady
from reside.model.reports import StackReport
from reside.model.stacks import DesiredStack
from reside.sentinel.guard.authority import Authority
from reside.sentinel.store.stacks import StackStore, StoredStack
from reside.sentinel.term.reports import Fault, StackState, compose, difference

OWNER = "co_zowner"


def config_map(name: str, value: str = "1") -> dict[str, Any]:
    labels = {MANAGED_BY_LABEL: FIELD_MANAGER, STACK_LABEL: "demo"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {"v": value}}


def stack(*objects: dict[str, Any]) -> DesiredStack:
    return DesiredStack("demo", OWNER, objects)


def stored(*objects: dict[str, Any]) -> StoredStack:
    return StoredStack("demo", OWNER).after_apply(stack(*objects))


def state(desired: DesiredStack | None, kept: StoredStack | None, **more: Any) -> StackState:
    values: dict[str, Any] = {"fault": None, "problems": {}, "live": {}, **more}
    return StackState("demo", desired, kept, values["fault"], values["problems"], values["live"])


# Stored stacks


def test_a_running_apply_stores_what_it_changes_and_deletes() -> None:
    before = stored(config_map("same"), config_map("changed"), config_map("leaving"))
    during = before.during_apply(stack(config_map("same"), config_map("changed", "2"), config_map("new")))
    assert during.pending == {"ConfigMap/changed", "ConfigMap/new"}
    assert during.leaving == {"ConfigMap/leaving"}
    assert not during.settled
    assert during.objects == before.objects


def test_after_a_failed_apply_the_next_one_remembers_what_was_touched() -> None:
    """Also if it returns to the earlier content, and if it removes what the failed one created."""
    before = stored(config_map("a"))
    failed = before.during_apply(stack(config_map("a", "2"), config_map("made")))
    back = failed.during_apply(stack(config_map("a")))
    assert back.pending == {"ConfigMap/a"}
    assert back.leaving == {"ConfigMap/made"}
    assert back.applied == before.applied


def test_an_applied_stack_is_settled_and_forgets_removed_jobs() -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}
    before = StoredStack("demo", OWNER, (job,), "r", {"Job/j": job})
    assert before.after_apply(stack(job)).finished == {"Job/j": job}
    after = before.during_apply(stack(config_map("a"))).after_apply(stack(config_map("a")))
    assert after.settled
    assert after.finished == {}
    assert after.applied == stack(config_map("a")).revision


def test_the_stack_store_survives_a_restart_and_a_broken_file(tmp_path: Path) -> None:
    store = StackStore(tmp_path / "stacks")
    kept = stored(config_map("a")).during_apply(stack(config_map("b")))
    store.save(kept)
    (tmp_path / "stacks" / "broken.json").write_text("{")
    again = StackStore(tmp_path / "stacks")
    assert again.stacks == {"demo": kept}
    assert again.holder("ConfigMap/a") == "demo"
    assert again.holder("ConfigMap/b") == "demo"
    assert again.holder("ConfigMap/else") is None
    again.remove("demo")
    assert StackStore(tmp_path / "stacks").stacks == {}


def test_a_stack_holds_its_objects_from_the_moment_its_first_apply_begins(tmp_path: Path) -> None:
    """Also if that apply fails, and until what it deletes is deleted."""
    store = StackStore(tmp_path)
    first = StoredStack("demo", OWNER).during_apply(stack(config_map("new")))
    store.save(first)
    assert store.holder("ConfigMap/new") == "demo"
    store.save(first.after_apply(stack(config_map("new"))).during_apply(stack(config_map("other"))))
    assert store.holder("ConfigMap/new") == "demo"
    store.save(store.stacks["demo"].after_apply(stack(config_map("other"))))
    assert store.holder("ConfigMap/new") is None


# Reports


def test_a_saved_stack_is_on_the_disk_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(Path(f"/proc/self/fd/{descriptor}").readlink()))
    StackStore(tmp_path).save(stored(config_map("a")))
    assert len(synced) == 2
    assert synced[-1] == tmp_path


def test_a_stack_that_the_leader_removes_during_a_read_is_skipped(tmp_path: Path) -> None:
    """A dangling link simulates an entry of a folder's list that is deleted a moment later."""
    kept = StackStore(tmp_path)
    kept.save(stored(config_map("a")))
    (tmp_path / "removed.json").symlink_to(tmp_path / "nowhere")
    assert StackStore(tmp_path).stacks.keys() == {"demo"}


def test_a_stack_that_can_not_be_removed_from_the_volume_is_kept_and_tried_again(tmp_path: Path) -> None:
    kept = StackStore(tmp_path)
    kept.save(stored(config_map("a")))
    (tmp_path / "demo.json").unlink()
    (tmp_path / "demo.json").mkdir()  # no file can be removed there
    with pytest.raises(NotReady, match=r"demo\.json can't be written"):
        kept.remove("demo")
    assert "demo" in kept.stacks


def test_an_applied_and_live_object_is_reported_as_updated() -> None:
    kept, live = stored(config_map("a")), {"ConfigMap/a": config_map("a")}
    report = compose(state(stack(config_map("a")), kept, live=live))
    assert report.revision == kept.applied
    assert report.error is None
    assert report.objects["ConfigMap/a"].status == "updated"


def test_a_declared_object_that_is_not_applied_is_reported_as_requested() -> None:
    report = compose(state(stack(config_map("a")), None))
    assert report.revision is None
    assert report.objects["ConfigMap/a"].status == "requested"


def test_an_error_of_a_stack_marks_only_new_objects() -> None:
    kept, live = (
        stored(config_map("a"), config_map("b")),
        {"ConfigMap/a": config_map("a"), "ConfigMap/b": config_map("b")},
    )
    desired = stack(config_map("a"), config_map("b", "2"), config_map("c"))
    report = compose(state(desired, kept, live=live, fault=Fault("broken")))
    assert report.error == "broken"
    assert {key: found.status for key, found in report.objects.items()} == {
        "ConfigMap/a": "updated",
        "ConfigMap/b": "error",
        "ConfigMap/c": "error",
    }
    blamed = compose(state(desired, kept, live=live, fault=Fault("broken", "ConfigMap/c")))
    assert blamed.objects["ConfigMap/b"].status == "requested"
    assert blamed.objects["ConfigMap/c"].error == "broken"


def test_a_failed_repair_is_an_error() -> None:
    report = compose(state(stack(config_map("a")), stored(config_map("a")), problems={"ConfigMap/a": "refused"}))
    assert report.objects["ConfigMap/a"].status == "error"
    assert report.objects["ConfigMap/a"].error == "refused"


def test_the_state_of_a_live_object_is_reported_with_the_reason_of_its_pods_or_of_events() -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "status": {}}
    key, kept = "PersistentVolumeClaim/c", stored(claim)

    def of(pod: str | None, event: str | None) -> tuple[str | None, str | None]:
        found = state(stack(claim), kept, live={key: claim})
        found = replace(found, pod_problem=lambda _: pod, trouble=lambda _, live: event if live["status"] == {} else "")
        report = compose(found).objects[key]
        assert StackReport.parse(compose(found).document()).objects[key] == replace(report, live=None)
        assert report.problem == (pod or event)
        return report.state, report.reason

    assert of(None, None) == ("in-progress", "it is not bound to a volume")
    assert of(None, "ProvisioningFailed: no") == ("in-progress", "ProvisioningFailed: no")
    assert of("Unschedulable: no", "ProvisioningFailed: no") == ("in-progress", "Unschedulable: no")
    assert compose(state(stack(claim), kept)).objects[key].state is None
    unknown = {"status": "updated", "live": claim, "error": None, "state": "of a newer release"}
    assert StackReport.parse({key: unknown}).objects[key].state is None


def test_a_finished_job_that_was_deleted_is_reported_as_it_was() -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "status": {"succeeded": 1}}
    kept = StoredStack("demo", OWNER, (job,), "r", {"Job/j": job})
    report = compose(state(stack(job), kept))
    assert report.objects["Job/j"].status == "updated"
    assert report.objects["Job/j"].live == job


def test_an_object_removed_from_the_stack_is_reported_until_it_is_deleted() -> None:
    kept = stored(config_map("a"))
    report = compose(state(stack(config_map("a")), kept, live={"ConfigMap/old": config_map("old")}))
    assert report.objects["ConfigMap/old"].status == "updated"
    assert "ConfigMap/old" not in compose(state(stack(config_map("a")), kept)).objects


def test_only_differences_are_written() -> None:
    report = compose(state(stack(config_map("a")), stored(config_map("a")), live={"ConfigMap/a": config_map("a")}))
    desired = report.document()
    assert difference(desired, desired) == ({}, [])
    assert difference({**desired, "error": "x", "ConfigMap/old": {}}, desired) == ({"error": None}, ["ConfigMap/old"])
    assert difference({}, desired) == (desired, [])


# The authority


def test_without_etcd_the_last_leader_continues_to_repair_and_followers_only_restore() -> None:
    authority, told = Authority(), []
    authority.listen(lambda: told.append(authority.state))
    assert authority.may_restore
    assert not authority.may_change
    authority.lead()
    authority.lose_etcd()
    assert authority.may_change
    authority.follow()
    assert not authority.may_restore
    authority.lose_etcd()
    assert authority.may_restore
    assert not authority.may_change
    assert told == ["leading", "orphaned", "following", "starting"]
