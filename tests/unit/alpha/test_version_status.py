"""Statuses of versions from the Sentinel's reports, together with the rollout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unit.alpha.entities import CLUSTER, OWNER, replica

from reside.alpha.stacks.render import render
from reside.alpha.status import changed_versions, newly_starting
from reside.model.constants import SEED_IDENTITY
from reside.model.reports import ObjectReport, StackReport

if TYPE_CHECKING:
    from reside.model.entities import Replica
    from reside.model.stacks import DesiredStack


def deployment(replicas: int, *, pods: int = 0, ready: int = 0, available: bool = False) -> ObjectReport:
    conditions = [{"type": "Available", "status": "True" if available else "False"}]
    status = {"replicas": pods, "readyReplicas": ready, "conditions": conditions, "observedGeneration": 1}
    live = {"kind": "Deployment", "metadata": {"generation": 1}, "spec": {"replicas": replicas}, "status": status}
    return ObjectReport("updated", live, None, pods)


UP = deployment(1, pods=1, ready=1, available=True)


def stack_of(subject: Replica) -> DesiredStack:
    return render(subject, CLUSTER, owner=OWNER)


def report(stack: DesiredStack, error: str | None = None, **objects: ObjectReport) -> StackReport:
    found = {f"Deployment/{name.replace('_', '-')}": value for name, value in objects.items()}
    return StackReport(stack.revision, error, found)


def changed_statuses(subject: Replica, stack: DesiredStack, seen: StackReport) -> dict[int, str]:
    """Return the statuses that have changed."""
    changed = changed_versions(subject, stack, seen, 0)
    return {n: v.status for n, v in changed.items() if v.status != subject.version(n).status}


def test_a_new_version_is_starting_then_running() -> None:
    subject = replica("unknown")
    stack = stack_of(subject)
    assert changed_statuses(subject, stack, report(stack, greeter_1=deployment(1, pods=1))) == {1: "starting"}
    assert changed_statuses(subject, stack, report(stack, greeter_1=UP)) == {1: "running"}


def test_only_changes_are_reported() -> None:
    subject = replica("running")
    stack = stack_of(subject)
    assert changed_statuses(subject, stack, report(stack, greeter_1=UP)) == {}


def test_an_old_version_that_still_serves_is_outdated() -> None:
    subject = replica("running", "starting")
    stack = stack_of(subject)
    found = changed_statuses(subject, stack, report(stack, greeter_1=UP, greeter_2=deployment(1, pods=1)))
    assert found == {1: "running-outdated"}


def test_a_missing_report_changes_no_status() -> None:
    subject = replica("running", "starting")
    assert changed_statuses(subject, stack_of(subject), StackReport()) == {}


def test_a_failed_apply_is_the_error_of_the_current_version_only() -> None:
    subject = replica("running-outdated", "unknown")
    stack = stack_of(subject)
    assert changed_statuses(subject, stack, report(stack, error="rule x", greeter_1=UP)) == {2: "error"}


def test_a_version_dropped_from_the_stack_has_stopped_once_the_sentinel_has_applied_that() -> None:
    subject = replica("error", "unknown", scalable=False)
    stack = stack_of(subject)
    assert changed_statuses(subject, stack, StackReport("an older revision", None, {})) == {}
    assert changed_statuses(subject, stack, report(stack)) == {1: "stopped"}


def test_a_completed_version_stays_completed() -> None:
    subject = replica("completed", kind="oneshot")
    stack = stack_of(subject)
    assert changed_statuses(subject, stack, StackReport(stack.revision)) == {}


def live_after(stack: DesiredStack, before: dict[str, Any]) -> dict[str, ObjectReport]:
    """Return what a cluster reports some time after applying `stack`: pods follow the desired state by one step."""
    reports = {}
    for key, manifest in zip(stack.keys(), stack.objects, strict=True):
        if key.startswith("Deployment/"):
            wanted, had = manifest["spec"]["replicas"], before.get(key, 0)
            if wanted and had:
                reports[key] = UP
            elif wanted:
                reports[key] = deployment(1, pods=1)
            else:
                reports[key] = deployment(0, pods=had)
            before[key] = wanted
    return reports


def play(subject: Replica, rounds: int = 8) -> tuple[Replica, list[dict[str, int]]]:
    """Let Alpha and a cluster react to each other; return the final statuses and the desired pods of each round."""
    before: dict[str, Any] = {
        f"Deployment/greeter-{v.id}": 1 for v in subject.versions if v.status in ("running", "running-outdated")
    }
    seen = []
    for _ in range(rounds):
        stack = stack_of(subject)
        wanted = {
            k: o["spec"]["replicas"]
            for k, o in zip(stack.keys(), stack.objects, strict=True)
            if k.startswith("Deployment/")
        }
        seen.append(wanted)
        found = changed_statuses(subject, stack, StackReport(stack.revision, None, live_after(stack, before)))
        versions = tuple(v.model_copy(update={"status": found.get(v.id, v.status)}) for v in subject.versions)
        subject = subject.model_copy(update={"versions": versions})
    return subject, seen


def test_a_scalable_update_ends_with_the_new_version_alone_without_a_gap() -> None:
    end, seen = play(replica("running", "unknown"))
    assert [v.status for v in end.versions] == ["stopped", "running"]
    assert seen[0] == {"Deployment/greeter-1": 1, "Deployment/greeter-2": 1}
    assert seen[-1] == {"Deployment/greeter-2": 1}


def test_a_non_scalable_update_stops_the_old_version_first() -> None:
    end, seen = play(replica("running", "unknown", scalable=False))
    assert [v.status for v in end.versions] == ["stopped", "running"]
    assert seen[0] == {"Deployment/greeter-1": 0, "Deployment/greeter-2": 0}
    assert all(sum(wanted.values()) <= 1 for wanted in seen)
    assert seen[-1] == {"Deployment/greeter-2": 1}


def test_a_declared_version_is_starting_before_anything_is_reported() -> None:
    """So the next version knows that this one may be running."""
    subject = replica("unknown", scalable=False)
    assert newly_starting(subject, stack_of(subject)) == {1: "starting"}
    assert newly_starting(replica("running"), stack_of(replica("running"))) == {}
    waiting = stack_of(replica("starting", "unknown", scalable=False))
    assert {o["metadata"]["name"]: o["spec"]["replicas"] for o in waiting.objects if o["kind"] == "Deployment"} == {
        "greeter-1": 0,
        "greeter-2": 0,
    }


def test_a_version_that_is_not_declared_is_not_starting() -> None:
    seed = replica("unknown", kind="oneshot", identity=SEED_IDENTITY)
    assert newly_starting(seed, stack_of(seed)) == {}


def test_a_version_whose_object_is_deleted_has_stopped_once_its_pods_have_ended() -> None:
    """A failed version loses its object; the next one of a replica that is not scalable must not start beside it."""
    subject = replica("error", "starting", scalable=False)
    stack = stack_of(subject)
    left = ObjectReport("requested", None, None, 1)
    assert 1 not in changed_statuses(subject, stack, report(stack, greeter_1=left))
    assert changed_statuses(subject, stack, report(stack))[1] == "stopped"


def test_a_version_that_has_stopped_does_not_run_again_while_its_object_is_being_deleted() -> None:
    """The object is live for a moment after it has left the stack, and nobody counts its pods any more.

    The next version of a replica that is not scalable was stopped for that moment.
    """
    subject = replica("stopped", "starting", scalable=False)
    stack = stack_of(subject)
    live = deployment(0).live
    assert live is not None
    for generation in (1, 2):  # a deletion may begin a generation that the controller has not observed
        leaving = ObjectReport("requested", live | {"metadata": {"generation": generation}}, None, None)
        assert 1 not in changed_statuses(subject, stack, report(stack, greeter_1=leaving))
    assert changed_statuses(subject, stack, report(stack, greeter_1=deployment(1, pods=1)))[1] != "stopped"
    remaining = ObjectReport("requested", live, None, 1)
    assert changed_statuses(subject, stack, report(stack, greeter_1=remaining))[1] == "stopping"
