"""docs/architecture.md describes packages as the import contracts and the code do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from support.package_diagram import allowed, closure, contracts, diagram, imports, packages, reduced

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "docs" / "architecture.md").read_text()
_SECTIONS = re.compile(r"^### ([\w.]+)\n(.*?)(?=^##)", re.MULTILINE | re.DOTALL)
_MOST_FILES: Final = 60
_MOST_FILES_TO_CANCEL: Final = 3


def part(heading: str) -> str:
    """Return the text below a heading, up to the next one of its level or above."""
    level = heading.split(" ", maxsplit=1)[0]
    found = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^#{{1,{len(level)}}} |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return found.group(1)


def paths_in(text: str) -> list[str]:
    """Return the files that a text names, each once."""
    return list(dict.fromkeys(re.findall(r"`((?:reside|policy|stacks|engine)/[\w/]+\.(?:py|go))`", text)))


def test_the_diagram_is_that_of_the_contracts() -> None:
    assert f"```mermaid\n{diagram()}\n```" in PAGE


def test_the_diagram_says_exactly_what_the_contracts_allow() -> None:
    assert closure(reduced(allowed())) == allowed()


def test_every_package_is_described_in_the_order_of_the_diagram() -> None:
    known = [package for layer in packages() for package in layer]
    assert [name for name, _ in _SECTIONS.findall(PAGE) if "." in name] == known


def test_the_imports_of_each_package_are_those_of_the_code() -> None:
    for package, imported in imports().items():
        line = f"Imports: {', '.join(f'`{name}`' for name in imported) or 'nothing of ReSide'}."
        assert line in " ".join(part(f"### {package}").split()), f"{package}: {line}"


@pytest.mark.parametrize("package", ["reside.jazz", "reside.sentinel"])
def test_the_layers_within_a_package_are_those_of_its_contract(package: str) -> None:
    (contract,) = [found for found in contracts() if found.get("containers") == [package]]
    layers = "\n".join(contract["layers"])
    assert f"```\n{layers}\n```" in part(f"### {package}")


def test_the_path_of_one_image_has_few_files() -> None:
    assert 0 < len(paths_in(part("## The path of one image"))) <= _MOST_FILES


def test_few_files_say_what_happens_when_an_apply_is_cancelled() -> None:
    assert 0 < len(paths_in(part("### What happens when an apply is cancelled"))) <= _MOST_FILES_TO_CANCEL
