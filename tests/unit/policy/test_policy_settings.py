"""Settings change levels and add rules of an organisation, as data that can't do anything else."""

from __future__ import annotations

from typing import Any

import pytest

from reside.policy.rules import Context, PolicyError, Violation, policy_of, review

LABELS = {"app.kubernetes.io/managed-by": "kubernetes-sentinel"}
IMAGE = "registry.reside.internal/demo@sha256:" + "a" * 64
WEB = {
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": LABELS},
    "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "a", "image": IMAGE}, {"name": "b"}]}}},
}


def rule(**members: Any) -> dict[str, Any]:
    """Return a rule of a pack."""
    base = {"id": "house", "kinds": ["Deployment"], "reason": "It is so.", "cure": "do it", "level": "mandatory"}
    return base | members


def of_pack(*rules: dict[str, Any], obj: dict[str, Any] = WEB, context: Context | None = None) -> list[Violation]:
    """Return the violations of the rule of a pack."""
    found = review([obj], context or Context("reside", stack="mine"), policy_of({"rules": list(rules)}))
    return [violation for violation in found if violation.rule == "house"]


@pytest.mark.parametrize(
    ("members", "places"),
    [
        ({"path": "metadata.labels.team", "present": True}, ["metadata.labels.team is missing"]),
        ({"path": ["metadata", "labels", "app.kubernetes.io/managed-by"], "present": True}, []),
        ({"path": "spec.replicas", "present": False}, ["spec.replicas is not allowed"]),
        ({"path": "spec.paused", "present": False}, []),
        ({"path": "spec.replicas", "oneOf": [1, 2]}, []),
        ({"path": "spec.replicas", "oneOf": ["2", True]}, ["spec.replicas is not allowed"]),
        (
            {"path": "spec.template.spec.containers.*.image", "startsWith": ["registry.reside.internal/"]},
            ["spec.template.spec.containers[1].image is missing"],
        ),
        (
            {"path": "spec.template.spec.containers.*.image", "startsWith": ["ghcr.io/"]},
            [
                "spec.template.spec.containers[0].image is not allowed",
                "spec.template.spec.containers[1].image is missing",
            ],
        ),
        ({"path": "spec.template.spec.volumes.*.name", "present": True}, []),
        ({"path": "metadata.labels.*", "oneOf": ["kubernetes-sentinel"]}, []),
        ({"path": "metadata.name.x", "present": True}, ["metadata.name.x is missing"]),
        ({"path": "metadata.labels.team", "present": True, "kinds": ["Secret"]}, []),
    ],
)
def test_a_rule_of_a_pack_says_what_must_be_at_a_path(members: dict[str, Any], places: list[str]) -> None:
    assert [found.message for found in of_pack(rule(**members))] == [f"{place}: do it" for place in places]


def test_a_violation_of_a_pack_has_level_reason_and_cure_and_never_the_value() -> None:
    secret = {"kind": "Secret", "metadata": {"name": "s", "labels": LABELS}, "stringData": {"key": "hunter2"}}
    (found,) = of_pack(rule(kinds=["Secret"], path="stringData.key", oneOf=["x"]), obj=secret)
    assert (found.level, found.reason, found.cure) == ("mandatory", "It is so.", "do it")
    assert "hunter2" not in repr(found)


def test_settings_change_levels_and_the_parts_of_reside_are_only_advised() -> None:
    policy = policy_of({"levels": {"read-only-root": "mandatory", "images-by-digest": "advisory"}})

    def levels(context: Context) -> dict[str, str]:
        return {found.rule: found.level for found in review([WEB], context, policy)}

    stack = Context("reside", stack="mine")
    assert levels(stack)["read-only-root"] == "mandatory"
    assert levels(stack)["images-by-digest"] == "advisory"
    assert levels(stack)["seccomp-profile"] == "advisory"
    for name in ("platform", "alpha", "kubernetes-sentinel"):
        assert levels(Context("reside", stack=name, trusted=True))["read-only-root"] == "advisory"
        assert levels(Context("reside", stack=name))["read-only-root"] == "mandatory"
    (found,) = of_pack(rule(path="spec.x", present=True), context=Context("reside", stack="platform", trusted=True))
    assert found.level == "advisory"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "the policy must be a JSON object"),
        ({"level": {}}, "the policy: level is unknown: use levels, rules"),
        ({"levels": {"nothing": "advisory"}}, "levels: nothing is unknown"),
        ({"levels": {"read-only-root": "off"}}, "levels: read-only-root: the level must be advisory or mandatory"),
        ({"levels": {"allowed-kinds": "advisory"}}, "allowed-kinds is always mandatory"),
        ({"rules": {}}, "rules must be a list"),
        ({"rules": [rule()] * 101}, "at most 100"),
        ({"rules": ["x"]}, "rule 0 must be a JSON object"),
        ({"rules": [rule(id="No")]}, "rule 0: id must be a name"),
        ({"rules": [rule(id="allowed-kinds", path="x", present=True)]}, "there is a rule allowed-kinds already"),
        ({"rules": [rule(path="x", present=True)] * 2}, "rule 1: there is a rule house already"),
        ({"rules": [rule(path="x")]}, "rule house: it needs one of present, oneOf, startsWith"),
        ({"rules": [rule(path="x", present=True, oneOf=[1])]}, "rule house: it needs one of"),
        ({"rules": [rule(path="x", present="yes")]}, "present must be true or false"),
        ({"rules": [rule(path="x", oneOf=[])]}, "oneOf must be a list of values"),
        ({"rules": [rule(path="x", oneOf=[{}])]}, "oneOf must be a list of values"),
        ({"rules": [rule(path="x", startsWith=[1])]}, "startsWith must be a list of texts"),
        ({"rules": [rule(path="a..b", present=True)]}, "path must be members"),
        ({"rules": [rule(path=3, present=True)]}, "path must be members"),
        ({"rules": [rule(kinds=[], path="x", present=True)]}, "kinds must be a list of kinds"),
        ({"rules": [rule(path="x", present=True, reason="")]}, "reason must be a text"),
        ({"rules": [rule(path="x", present=True, level="fatal")]}, "the level must be advisory or mandatory"),
        ({"rules": [rule(path="x", present=True, code="import os")]}, "code is unknown"),
    ],
)
def test_wrong_settings_are_refused_with_the_place(document: object, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        policy_of(document)
