"""The rules as a CrossGuard pack: `pulumi preview --policy-pack policy` refuses violations."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PACK = Path(__file__).parents[3] / "policy"
PROJECT = f"""\
name: packtrial
runtime:
  name: python
  options:
    virtualenv: {sys.prefix}
"""
PROGRAM = """\
import json

import pulumi

rendered = pulumi.ProviderResource(
    "kubernetes", "rendered", {"renderYamlToDirectory": "rendered"}, pulumi.ResourceOptions(version="4.25.0")
)
with open("objects.json") as stream:
    for token, properties in json.load(stream):
        options = pulumi.ResourceOptions(provider=rendered, version="4.25.0")
        pulumi.CustomResource(token, properties["metadata"]["name"], properties, options)
"""
LABELS = {"app.kubernetes.io/managed-by": "kubernetes-sentinel"}
GOOD = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "good", "labels": LABELS}}
BAD_POD = {"containers": [{"name": "main", "image": "demo:latest", "securityContext": {"privileged": True}}]}
APP = {"app": "bad"}
BAD = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "bad"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": BAD_POD},
    },
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project that declares the objects of objects.json, rendered to files: no cluster is needed."""
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "state").mkdir()
    (folder / "Pulumi.yaml").write_text(PROJECT)
    (folder / "__main__.py").write_text(PROGRAM)
    return folder


def preview(folder: Path, *objects: tuple[str, dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    """Preview the objects with the policy pack."""
    (folder / "objects.json").write_text(json.dumps(objects))
    environment = {
        **os.environ,
        "PULUMI_HOME": str(folder.parent / "home"),
        "PULUMI_BACKEND_URL": f"file://{folder.parent / 'state'}",
        "PULUMI_CONFIG_PASSPHRASE": "trial",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    base = ["pulumi", "--non-interactive", "--color", "never"]
    subprocess.run([*base, "stack", "init", "dev"], cwd=folder, env=environment, capture_output=True, check=False)
    command = [*base, "preview", "--stack", "dev", "--policy-pack", str(PACK)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_objects_that_break_rules_are_refused_with_rule_object_and_cure(project: Path) -> None:
    refused = preview(project, ("kubernetes:core/v1:ConfigMap", GOOD), ("kubernetes:apps/v1:Deployment", BAD))
    shown = refused.stdout + refused.stderr
    assert refused.returncode != 0, shown
    for words in (
        "images-by-digest",
        "Deployment/bad: container main uses image demo:latest: name it by digest",
        "no-privileges",
        "Deployment/bad: container main is privileged",
        "managed-by-label",
        "Deployment/bad: set the label app.kubernetes.io/managed-by: kubernetes-sentinel",
    ):
        assert words in shown
    assert "ConfigMap/good" not in shown


def test_objects_that_obey_the_rules_pass(project: Path) -> None:
    passed = preview(project, ("kubernetes:core/v1:ConfigMap", GOOD))
    assert passed.returncode == 0, passed.stdout + passed.stderr
