"""docs/versions.md names the versions that the code uses, and the files that a release has."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Final

import pytest

from tools.builder import units

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "docs/versions.md").read_text()


def project(path: str) -> dict[str, object]:
    found: dict[str, object] = tomllib.loads((ROOT / path).read_text())["project"]
    return found


@pytest.mark.parametrize(
    ("what", "version"),
    [
        ("Python", str(project("pyproject.toml")["requires-python"]).removeprefix(">=")),
        ("Kubernetes", units.KUBERNETES_VERSION.removeprefix("v")),
        ("Pulumi's engine", units.PULUMI_VERSION.removeprefix("v")),
        ("Jazz (cojson)", json.loads((ROOT / "images/jazz/package.json").read_text())["dependencies"]["cojson"]),
    ],
)
def test_a_supported_version_is_that_of_the_code(what: str, version: str) -> None:
    table = PAGE.partition("## What is supported\n")[2].partition("\n## ")[0]
    row = next(line for line in table.splitlines() if line.startswith(f"| {what} |"))
    assert row.split(" | ")[-1].strip(" |") == version


def test_both_distributions_have_one_version_and_one_requirement() -> None:
    found = {project(path)["version"] for path in ("pyproject.toml", "reside/jazz/pyproject.toml")}
    required = re.search(r'"reside-jazz\[[\w,]+\]==([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    assert required is not None
    assert found == {required[1]}
