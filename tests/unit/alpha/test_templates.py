"""A version keeps its pod template until the new one is asked for; its placement is not kept."""

from __future__ import annotations

from typing import Any

from reside.alpha.stacks.templates import template_change, template_digest, with_kept_template


def deployment(cpu: str = "1m", node: str | None = None, replicas: int = 1) -> dict[str, Any]:
    """Return a Deployment with this CPU request, on the nodes of a placement group."""
    pod: dict[str, Any] = {"containers": [{"name": "main", "cpu": cpu}]}
    if node is not None:
        pod["nodeSelector"] = {"group": node}
    return {"kind": "Deployment", "spec": {"replicas": replicas, "template": {"metadata": {}, "spec": pod}}}


def test_another_template_is_kept_and_the_rest_is_new() -> None:
    kept = with_kept_template(deployment("2m", replicas=0), deployment("1m"), None)
    assert kept == deployment("1m", replicas=0)


def test_the_template_that_was_asked_for_is_used() -> None:
    asked = template_digest(deployment("2m"))
    assert with_kept_template(deployment("2m"), deployment("1m"), asked) == deployment("2m")
    assert with_kept_template(deployment("3m"), deployment("2m"), asked) == deployment("2m")


def test_the_placement_changes_with_every_template_and_is_no_part_of_its_digest() -> None:
    assert with_kept_template(deployment("2m", "ssd"), deployment("1m"), None) == deployment("1m", "ssd")
    assert with_kept_template(deployment("2m"), deployment("1m", "ssd"), None) == deployment("1m")
    assert template_digest(deployment(node="ssd")) == template_digest(deployment())
    assert template_change(deployment(node="ssd"), deployment()) is None


def test_a_change_names_the_members_that_differ() -> None:
    changed = template_change(deployment("2m"), deployment("1m"))
    assert changed is not None
    assert changed.paths == ("spec.containers[0].cpu",)
    assert changed.digest == template_digest(deployment("2m"))
    longer = deployment()
    longer["spec"]["template"]["spec"]["containers"].append({"name": "side"})
    longer["spec"]["template"]["metadata"]["labels"] = {"a": "b"}
    found = template_change(longer, deployment())
    assert found is not None
    assert found.paths == ("metadata.labels", "spec.containers")


def test_an_equal_template_is_no_change() -> None:
    assert template_change(deployment(replicas=0), deployment()) is None
