"""docs/contracts.md is what the contracts say, and docs/model.md has the bodies of their methods."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from reside.model.kinds import KINDS
from tools.contracts_reference import PAGE, contracts, page

MODEL: Final = Path(__file__).parents[3] / "docs/model.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), "run `python tools/contracts_reference.py`"


def test_every_permission_and_method_has_a_title() -> None:
    for contract in contracts():
        for name, each in [*contract.permissions.items(), *contract.methods.items()]:
            assert each.display_info["en"].title, name


@pytest.mark.parametrize("name", ["alpha.v1", "user-manager.v1"])
def test_the_model_has_the_body_of_each_method(name: str) -> None:
    (contract,) = (each for each in contracts() if each.identity.endswith(f"/{name}"))
    section = MODEL.read_text().partition("\n## 10. RPC\n")[2].partition(f"contract `{name}`")[2]
    table = section.partition("| --- |")[2].partition("\n\n")[0]
    cells = re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE)
    assert {method for cell in cells for method in re.findall(r"`([a-z-]+)`", cell)} == contract.methods.keys()


@pytest.mark.parametrize("page", ["security.md", "comparison.md"])
def test_pages_count_the_kinds_that_the_sentinel_manages(page: str) -> None:
    assert len(KINDS) == 13
    text = " ".join((MODEL.parent / page).read_text().split())
    assert "thirteen" in text
    assert "twelve" not in text
