"""Every code, status, reason and rule that ReSide shows is explained, with a cure."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args

import pytest

from reside.alpha.loading.resolve import check_runnable
from reside.cli import main
from reside.cli.explanation import CALL, POLICY
from reside.cli.explanations import causes, explain, explanations, with_cure
from reside.jazz import JazzUnavailable
from reside.locks.errors import LockLost, LockTimeout
from reside.model.entities import DirectGrantStatus, LoadRequestStatus, PermissionStatus
from reside.model.errors import LoadRefused, ResideError
from reside.model.object_state import State, object_state
from reside.model.object_trouble import object_trouble
from reside.model.pod_problem import pod_problem
from reside.model.reports import ObjectStatus
from reside.model.status import VersionStatus
from reside.policy import rules
from reside.policy.rule import Violation
from reside.registry.documents import Description
from reside.sentinel.engine.adoption import ForeignObject

if TYPE_CHECKING:
    from collections.abc import Iterator


def codes(kind: type[ResideError]) -> Iterator[str]:
    if kind.__module__.startswith("reside."):
        yield kind.code
    for inner in kind.__subclasses__():
        yield from codes(inner)


def test_every_error_code_of_a_call_has_an_entry() -> None:
    for module in ("rpc", "refusals"):  # they have errors of their own
        import_module(f"reside.replica.{module}")
    assert {each.code for each in explanations() if each.topic == CALL} == set(codes(ResideError))


@pytest.mark.parametrize(
    "literal", [VersionStatus, LoadRequestStatus, PermissionStatus, DirectGrantStatus, ObjectStatus, State]
)
def test_every_status_has_an_entry(literal: Any) -> None:
    assert all(explain(status) for status in get_args(literal))


def test_every_rule_of_the_policy_has_an_entry() -> None:
    assert [each.code for each in explanations() if each.topic == POLICY] == list(rules.RULES)


def test_no_topic_has_two_entries_of_a_code_and_all_have_a_cure() -> None:
    every = explanations()
    assert len({(each.code, each.topic) for each in every}) == len(every)
    assert all(each.meaning.endswith(".") and each.cure and not each.cure.endswith(".") for each in every)


def waiting(reason: str, message: str) -> str | None:
    state = {"waiting": {"reason": reason, "message": message}}
    return pod_problem({"status": {"containerStatuses": [{"state": state}]}})


def ended(reason: str) -> str | None:
    last = {"terminated": {"exitCode": 137, "reason": reason}}
    return pod_problem({"status": {"containerStatuses": [{"restartCount": 3, "state": {}, "lastState": last}]}})


def unscheduled(message: str) -> str | None:
    found = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return pod_problem({"status": {"conditions": [found]}})


def refused(message: str) -> str | None:
    return object_trouble({"involvedObject": {"kind": "StatefulSet"}, "reason": "FailedCreate", "message": message})


def root_image() -> str:
    with pytest.raises(LoadRefused) as caught:
        check_runnable("x", Description({}, "root", layered=True))
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (waiting("ErrImagePull", "not found"), "ImagePullBackOff"),
        (waiting("CreateContainerConfigError", 'secret "x" not found'), "CreateContainerConfigError"),
        (
            waiting("CreateContainerConfigError", "container has runAsNonRoot and image will run as root"),
            "runAsNonRoot",
        ),
        (waiting("RunContainerError", "exec: no such file"), "CreateContainerError"),
        (waiting("InvalidImageName", "parse"), "InvalidImageName"),
        (ended("Error"), "CrashLoopBackOff"),
        (ended("OOMKilled"), "OOMKilled"),
        (unscheduled("0/1 nodes are available: 1 Insufficient cpu."), "Unschedulable"),
        (refused('create Pod x-0 in StatefulSet x failed error: pods "x-0" is forbidden: exceeded quota: q'), "quota"),
        (refused("create Pod x-0 in StatefulSet x failed error: webhook says no"), "FailedCreate"),
        (object_state({"kind": "X", "metadata": {"deletionTimestamp": "t", "finalizers": ["f"]}}).reason, "finalizer"),
        (object_state({"kind": "PersistentVolumeClaim", "status": {"phase": "Lost"}}).reason, "volume-lost"),
        (str(ForeignObject("Service/x", "helm")), "foreign-object"),
        (str(ForeignObject("Service/x", "helm", "other")), "foreign-object"),
        (str(Violation("no-privileges", "Deployment/x", "remove it")), "policy"),
        (root_image(), "runAsNonRoot"),
        (str(LockLost("k", "its lease expired")), "lease-lost"),
        (str(LockTimeout("k", "alpha")), "lock-held"),
        (
            "requirement 'a': no replica implements x: load a replica that does first",
            "waiting-for-requirement",
        ),
        ("greet needs the permission greet of c, which co_z1 was not granted by greeter", "waiting-for-grant"),
        ("expired: nobody approved it within 24 h; load the image again", "expired-request"),
        ("it was not healthy within 120 s: its pods have not become ready", "unhealthy-version"),
        ("it was not healthy within 120 s: CrashLoopBackOff: exit code 1", "CrashLoopBackOff"),
        (f"Jazz can't be reached at ws://x: {JazzUnavailable('closed')}", "jazz-unavailable"),
        ("the Kubernetes API cannot be reached: dial tcp", "kubernetes-unavailable"),
        ("helm manages fields that the stack sets: .spec.replicas", "field-conflict"),
        ('Service "x" is invalid: spec.clusterIP: may not change once set; field is immutable', "immutable-field"),
        ('roles is forbidden: User "system:serviceaccount:x" cannot list', "rights"),
    ],
)
def test_the_text_of_a_reason_is_recognised(text: str | None, code: str) -> None:
    assert text
    assert [each.code for each in causes([text, None, text])] == [code]


def test_unknown_texts_tell_nothing() -> None:
    assert not list(causes(["it has not started", None, ""]))


def test_a_failed_load_ends_with_the_reason_and_its_cure() -> None:
    why = "it was not healthy within 15 s: CrashLoopBackOff: exit code 3"
    assert with_cure(why).startswith(f"{why}; to do: read why in `reside replica logs NAME`")
    assert with_cure("its pods have not become ready") == "its pods have not become ready"


def test_a_code_is_explained_in_every_topic_that_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["explain", "Error"]) == 0
    printed = capsys.readouterr().out
    assert [line for line in printed.splitlines() if line.startswith("error: ")] == [
        "error: call error",
        "error: version status",
        "error: object report",
    ]
    assert printed.count("Cure: ") == 3


def test_the_list_has_all_codes_and_is_for_programs_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["explain", "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == [each.document() for each in explanations()]
    assert main.run(["explain", "quota", "--output", "name"]) == 0
    assert capsys.readouterr().out == "quota\n"


def test_an_unknown_code_is_an_error_with_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["explain", "CrashLopBackOff"]) == 1
    assert "perhaps you mean CrashLoopBackOff: `reside explain` lists all codes" in capsys.readouterr().err
