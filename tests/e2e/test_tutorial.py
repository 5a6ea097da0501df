"""The commands of the README's first quick start and of docs/tutorial.md, as written and in order, on a real cluster.

The fixture `platform` runs the first of them, `make up`. The other quick starts are in test_bootstrap.py and
test_existing_cluster.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from e2e.pages import README, follow, reader
from support.platform import ROOT
from support.tutorial import in_tab, section, steps

if TYPE_CHECKING:
    from pathlib import Path

    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


def test_the_readme_is_true(platform: Platform, tmp_path: Path) -> None:
    if "caller" in platform.replicas():  # of another test
        platform.reside("replica", "delete", "caller", "--auto-approve")
    shell = reader(platform, tmp_path)
    assert steps(section(README, "Only this machine"))[0].script == "make up\n", "the fixture `platform` ran it"
    for heading in ("Look around", "Load a replica"):
        follow(shell, section(README, heading))


TUTORIAL = (ROOT / "docs/tutorial.md").read_text()


def test_the_tutorial_is_true(platform: Platform, tmp_path: Path) -> None:
    follow(reader(platform, tmp_path), in_tab(TUTORIAL, "Python"))
    assert not {"quoter", "reader"} & set(platform.replicas())


def test_the_code_of_the_tutorial_in_typescript_is_true(platform: Platform, tmp_path: Path) -> None:
    """Upgrade, rollback and repair are the same in all languages, so they are left out."""
    shell, page = reader(platform, tmp_path, tmp_path), in_tab(TUTORIAL, "TypeScript")
    headings = re.findall(r"^## (\d\. .+)$", page, re.MULTILINE)
    follow(shell, "".join(section(page, heading) for heading in (*headings[:5], headings[-1])))
    assert not {"quoter", "reader"} & set(platform.replicas())
