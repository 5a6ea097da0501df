"""The commands that the README and the pages name exist, with their options; scripts are scripts."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest
from support.page_commands import Named, fault, fences, named

ROOT: Final = Path(__file__).parents[3]
PAGES: Final = ("README.md", "CONTRIBUTING.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md")))
GENERATED: Final = "docs/cli.md"
"""Its fences are forms, such as `reside build FOLDER [OPTIONS]`."""
TARGETS: Final = set(re.findall(r"^([a-z]+|\S+/\.\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
_COMMAND: Final = re.compile(r"^(reside|make|kubectl|docker|source|export|pulumi|python|git|uv|curl) ", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_every_command_that_a_page_names_exists(page: str) -> None:
    found = named(page, (ROOT / page).read_text())
    assert [f"{each.place}: {wrong}" for each in found if (wrong := fault(each, TARGETS))] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page != GENERATED])
def test_scripts_are_marked_as_such_and_parse(page: str) -> None:
    for line, language, content in fences((ROOT / page).read_text()):
        place = f"{page}:{line}"
        assert language or "[" in content or not _COMMAND.search(content), f"{place}: mark the fence with sh"
        if language == "sh":
            done = subprocess.run(["bash", "-n"], input=content, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{place}: {done.stderr}"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("reside replica load IMAGE", None),
        ("make up KUBE_CONTEXT=…", None),
        ("make everything", "make has no target everything"),
        ("reside fly", "reside has no command fly"),
        ("reside replica fly NAME", "reside replica has no command fly"),
        ("reside replica canary promote NAME", None),
        ("reside replica …", None),
        ("reside build FOLDER [--pull]", "reside build has no option --pull"),
        ("reside replica list --watch | cat", None),
    ],
)
def test_a_form_is_compared_with_the_code(text: str, wrong: str | None) -> None:
    assert [fault(each, TARGETS) for each in named("a", f"`{text}`")] == [wrong]


@pytest.mark.parametrize(
    ("script", "wrong"),
    [
        ("reside replica list", [None]),
        ("reside replica", ["reside replica needs a command"]),
        ("reside replica describe", ["reside replica describe: name is missing"]),
        ("reside replica describe a b", ["reside replica describe: too many arguments"]),
        ("export K=$(reside local config)", ["reside local has no command config"]),
        ("cd x && reside explain\nmake help # it lists", [None, None]),
    ],
)
def test_a_script_must_be_complete(script: str, wrong: list[str | None]) -> None:
    assert [fault(each, TARGETS) for each in named("a", f"```sh\n{script}\n```\n")] == wrong


def test_a_command_of_a_script_knows_its_line() -> None:
    assert list(named("a", "# A\n\n```sh\ntrue\nreside explain\n```\n")) == [
        Named("a:5", ("reside", "explain"), is_form=False)
    ]
