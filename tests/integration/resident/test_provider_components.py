"""The Kubernetes provider's own components, which it registers through our small replacement of Pulumi's Go SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
from integration.resident.programs import kubernetes
from integration.resident.sides import PROVIDER
from pulumi import ResourceOptions

if TYPE_CHECKING:
    from pathlib import Path

    from integration.resident.sides import Program, Side, Sides

GROUP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: of-a-group}
data: {value: one}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: of-a-group}
rules: []
"""
CHART = {
    "Chart.yaml": "apiVersion: v2\nname: trial\nversion: 1.0.0\n",
    "templates/map.yaml": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: of-a-chart}
data: {value: {{ .Values.value | quote }}}
""",
}


def component(side: Side, kind: str, inputs: dict[str, Any]) -> Program:
    """Return a program with one component of the provider."""

    def run() -> None:
        options = ResourceOptions(providers={"kubernetes": kubernetes(side)}, version=PROVIDER)
        pulumi.ComponentResource(f"kubernetes:{kind}", "trial", inputs, options, remote=True)

    return run


def types(side: Side, stack: str) -> set[str]:
    """Return the types of all objects in a stack's state."""
    resources = side.workspace(stack).export_stack(stack).deployment["resources"]
    return {resource["type"] for resource in resources if resource.get("id") and "providers" not in resource["type"]}


def test_yaml_components_create_objects_of_their_own_types(sides: Sides) -> None:
    side = sides.stock
    side.up(side.stack("group"), component(side, "yaml/v2:ConfigGroup", {"yaml": GROUP, "skipAwait": True}))
    assert side.live("ConfigMap/of-a-group")["data"] == {"value": "one"}
    assert side.live("Role/of-a-group")
    assert types(side, "group") == {"kubernetes:core/v1:ConfigMap", "kubernetes:rbac.authorization.k8s.io/v1:Role"}


def test_a_chart_is_rendered_with_its_options(sides: Sides, tmp_path: Path) -> None:
    for name, text in CHART.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    inputs = {
        "chart": str(tmp_path),
        "values": {"value": "two"},
        "postRenderer": {"command": "sed", "args": ["s/two/three/"]},
        "repositoryOpts": {"username": "nobody"},
    }
    side = sides.stock
    side.up(side.stack("chart"), component(side, "helm.sh/v4:Chart", inputs))
    assert side.live("ConfigMap/of-a-chart")["data"] == {"value": "three"}
