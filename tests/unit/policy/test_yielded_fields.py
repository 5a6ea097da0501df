"""Which fields an object may leave to others, and how they are named."""

from __future__ import annotations

from typing import Any

import pytest

from reside.policy.context import Context
from reside.policy.yielded_fields import MOST_PATHS, allowed_yields, parse_path, yielded_fields

CONTEXT = Context("reside", stack="mine")


def manifest(kind: str, value: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": "a", "annotations": {"reside.io/yield": value}}}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("spec.replicas", ("spec", "replicas")),
        ('data["a.b"]', ("data", "a.b")),
        ('metadata.annotations["example.com/seen"]', ("metadata", "annotations", "example.com/seen")),
        ("metadata.annotations.seen", ("metadata", "annotations", "seen")),
        ("", None),
        (".spec", ("spec",)),
        ("spec..replicas", None),
        ("spec.replicas.", None),
        ("spec[0]", None),
        ('data["a', None),
        ("spec replicas", None),
    ],
)
def test_a_path_names_members(text: str, path: tuple[str, ...] | None) -> None:
    assert parse_path(text) == path


@pytest.mark.parametrize(
    ("kind", "value", "paths"),
    [
        ("Deployment", "spec.replicas", [("spec", "replicas")]),
        ("StatefulSet", " spec.replicas ,metadata.labels.a,", [("spec", "replicas"), ("metadata", "labels", "a")]),
        ("Deployment", "spec.template.metadata.annotations.x", [("spec", "template", "metadata", "annotations", "x")]),
        ("Job", "spec.parallelism", [("spec", "parallelism")]),
        ("ConfigMap", 'data, binaryData["a.bin"]', [("data",), ("binaryData", "a.bin")]),
        ("PersistentVolumeClaim", "spec.resources.requests.storage", [("spec", "resources", "requests", "storage")]),
    ],
)
def test_fields_that_no_rule_judges_can_be_yielded(kind: str, value: str, paths: list[tuple[str, ...]]) -> None:
    assert list(allowed_yields(manifest(kind, value))) == paths
    assert list(yielded_fields(manifest(kind, value), CONTEXT)) == []


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("Deployment", "spec"),
        ("Deployment", "spec.template"),
        ("Deployment", "spec.template.metadata.labels.app"),
        ("Deployment", "spec.template.spec.hostNetwork"),
        ("Deployment", "metadata.annotations"),
        ("Deployment", 'metadata.annotations["pulumi.com/patchForce"]'),
        ("Deployment", 'metadata.labels["reside.io/replica"]'),
        ("ConfigMap", "metadata.name"),
        ("Secret", "data.password"),
        ("Service", "spec.type"),
        ("ConfigMap", ["data"]),
        ("ConfigMap", "data[0]"),
        (["ConfigMap"], "data"),
    ],
)
def test_any_other_field_is_refused_and_ignored(kind: Any, value: Any) -> None:
    """It is ignored, too, by everything that applies objects: a stored stack may be older than the rule."""
    assert len(list(yielded_fields(manifest(kind, value), CONTEXT))) == 1
    assert allowed_yields(manifest(kind, value)) == ()


def test_the_number_of_fields_is_limited() -> None:
    value = ",".join(f"data.k{number}" for number in range(1000))
    assert len(list(yielded_fields(manifest("ConfigMap", value), CONTEXT))) == 1
    assert len(allowed_yields(manifest("ConfigMap", value))) == MOST_PATHS
