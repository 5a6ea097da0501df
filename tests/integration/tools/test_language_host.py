"""Our language host with a stock Pulumi engine: programs, components, dynamic resources, options, policy packs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = """\
name: hosttrial
runtime:
  name: python
  options:
    virtualenv: {virtualenv}
"""

NOTES = '''\
"""A dynamic provider in an importable module."""

from pulumi.dynamic import CreateResult, Resource, ResourceProvider


class NoteProvider(ResourceProvider):
    def create(self, props):
        return CreateResult("note-1", {**props, "shout": props["text"].upper()})


class Note(Resource):
    shout: "pulumi.Output[str]"

    def __init__(self, name, text, opts=None):
        super().__init__(NoteProvider(), name, {"text": text, "shout": None}, opts)
'''

PROGRAM = """\
import sys

import pulumi
from notes import Note


class Box(pulumi.ComponentResource):
    def __init__(self, name, text):
        super().__init__("trial:index:Box", name)
        self.note = Note(f"{name}-note", text, pulumi.ResourceOptions(parent=self))
        self.register_outputs({"shout": self.note.shout})


config = pulumi.Config()
pulumi.export("shout", Box("box", config.require("text")).note.shout)
pulumi.export("prefix", sys.prefix)
pulumi.export("hidden", config.require_secret("hidden"))
"""

PACK = """\
from pulumi_policy import EnforcementLevel, PolicyPack, ResourceValidationPolicy


def no_shouting(args, report_violation):
    if args.props.get("text") == "forbidden":
        report_violation("text must not be 'forbidden'")


PolicyPack(
    "trial",
    enforcement_level=EnforcementLevel.MANDATORY,
    policies=[ResourceValidationPolicy("no-forbidden-text", "No forbidden text.", no_shouting)],
)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project folder with a file backend, a component and a dynamic resource."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text(PROJECT.format(virtualenv=sys.prefix))
    (folder / "notes.py").write_text(NOTES)
    (folder / "__main__.py").write_text(PROGRAM)
    (tmp_path / "state").mkdir()
    pulumi(folder, "stack", "init", "dev")
    pulumi(folder, "config", "set", "text", "hello")
    pulumi(folder, "config", "set", "--secret", "hidden", "a-secret-value")
    return folder


def pulumi(folder: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run the Pulumi command line in `folder`."""
    environment = {
        **os.environ,
        "PULUMI_HOME": str(folder.parent / "home"),
        "PULUMI_BACKEND_URL": f"file://{folder.parent / 'state'}",
        "PULUMI_CONFIG_PASSPHRASE": "trial",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    command = ["pulumi", "--non-interactive", "--color", "never", *arguments]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert not check or result.returncode == 0, result.stdout + result.stderr
    return result


def outputs(folder: Path) -> dict[str, str]:
    """Return the stack's outputs, secrets masked."""
    found: dict[str, str] = json.loads(pulumi(folder, "stack", "output", "--json").stdout)
    return found


def test_program_with_component_and_dynamic_resource_runs_in_the_named_virtual_environment(project: Path) -> None:
    pulumi(project, "up", "--yes", "--skip-preview")
    assert outputs(project) == {"shout": "HELLO", "prefix": sys.prefix, "hidden": "[secret]"}


def test_second_up_changes_nothing_and_destroy_removes_all(project: Path) -> None:
    pulumi(project, "up", "--yes", "--skip-preview")
    pulumi(project, "up", "--yes", "--skip-preview", "--expect-no-changes")
    pulumi(project, "destroy", "--yes", "--skip-preview")
    assert outputs(project) == {}


def test_error_of_the_program_is_shown_once_with_its_place(project: Path) -> None:
    (project / "__main__.py").write_text("import pulumi\nraise ValueError('wrong on purpose')\n")
    result = pulumi(project, "preview", check=False)
    assert result.returncode != 0
    shown = result.stdout + result.stderr
    assert shown.count("ValueError: wrong on purpose") == 1
    assert "__main__.py" in shown


def test_missing_virtual_environment_is_named_with_the_cure(project: Path) -> None:
    (project / "Pulumi.yaml").write_text(PROJECT.format(virtualenv="nowhere"))
    result = pulumi(project, "preview", check=False)
    assert result.returncode != 0
    assert f"no Python at {project}/nowhere/bin/python" in result.stdout + result.stderr


def test_policy_pack_refuses_a_resource_and_passes_another(project: Path, tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    pack.mkdir()
    options = f"{{name: python, options: {{virtualenv: {sys.prefix}}}}}"
    (pack / "PulumiPolicy.yaml").write_text(f"runtime: {options}\nversion: 0.0.1\n")
    (pack / "__main__.py").write_text(PACK)

    assert pulumi(project, "preview", "--policy-pack", str(pack)).returncode == 0

    pulumi(project, "config", "set", "text", "forbidden")
    refused = pulumi(project, "preview", "--policy-pack", str(pack), check=False)
    assert refused.returncode != 0
    assert "text must not be 'forbidden'" in refused.stdout + refused.stderr


def test_about_names_interpreter_and_dependencies(project: Path) -> None:
    about = json.loads(pulumi(project, "about", "--json").stdout)
    assert about["runtime"]["language"] == "python"
    assert about["runtime"]["executable"].startswith(sys.prefix)
    assert "pulumi" in {dependency["name"] for dependency in about["dependencies"]}
