"""Print the package diagram of docs/architecture.md, and what each package imports.

    python -m tests.support.package_diagram

The diagram is what the import contracts of pyproject.toml allow. An arrow from A to B means that A may import B. Arrows
that follow from others are left out: what A may import is what can be reached from A. The imports are those of the
code. A test compares the page with both.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import grimp

ROOT: Final = Path(__file__).parents[2]
LAYERS: Final = "Packages import downwards only"
"""Name of the contract that lists all packages."""

Arrows = set[tuple[str, str]]


def contracts(root: Path = ROOT) -> list[dict[str, Any]]:
    """Return the import contracts."""
    project = tomllib.loads((root / "pyproject.toml").read_text())
    found: list[dict[str, Any]] = project["tool"]["importlinter"]["contracts"]
    return found


def layers_of(name: str) -> list[str]:
    """Return the layers of a contract as they are written, highest first."""
    (contract,) = [contract for contract in contracts() if contract["name"] == name]
    return list(contract["layers"])


def packages() -> list[list[str]]:
    """Return the packages of each layer, highest first."""
    return [[name.strip() for name in layer.split("|")] for layer in layers_of(LAYERS)]


def allowed() -> Arrows:
    """Return the allowed imports: a higher layer may import a lower one, unless another contract forbids it."""
    found, below = set[tuple[str, str]](), list[str]()
    for layer in reversed(packages()):
        found |= {(importer, imported) for importer in layer for imported in below}
        below += layer
    for contract in contracts():
        if contract["type"] == "forbidden":
            found -= {pair for pair in found if _forbids(contract, *pair)}
        elif contract["type"] == "independence":
            found -= {(a, b) for a in contract["modules"] for b in contract["modules"]}
    return found


def reduced(arrows: Arrows) -> Arrows:
    """Return the arrows without those that follow from two others."""
    return {(a, b) for a, b in arrows if not any((a, c) in arrows and (c, b) in arrows for _, c in arrows)}


def closure(arrows: Arrows) -> Arrows:
    """Return all pairs that are connected by arrows."""
    found = set(arrows)
    while added := {(a, d) for a, b in found for c, d in found if b == c} - found:
        found |= added
    return found


def diagram() -> str:
    """Return the diagram in Mermaid's language."""
    lines = ["flowchart TD"]
    for number, layer in enumerate(packages(), 1):
        lines.append(f'    subgraph layer{number}[" "]')
        lines += [f'        {_node(package)}["{package}"]' for package in layer]
        lines.append("    end")
    order = [package for layer in packages() for package in layer]
    arrows = sorted(reduced(allowed()), key=lambda pair: (order.index(pair[0]), order.index(pair[1])))
    return "\n".join([*lines, *(f"    {_node(a)} --> {_node(b)}" for a, b in arrows)])


def imports() -> dict[str, list[str]]:
    """Return for each package the packages that it imports directly, in the order of the diagram."""
    order = [package for layer in packages() for package in layer]
    graph = grimp.build_graph(*sorted({package.split(".")[0] for package in order}), cache_dir=None)
    found: dict[str, set[str]] = {package: set() for package in order}
    for module in graph.modules:
        importer = _package_of(module, order)
        if importer is not None:
            for imported in graph.find_modules_directly_imported_by(module):
                found[importer].add(_package_of(imported, order) or importer)
    return {package: [other for other in order if other in found[package] - {package}] for package in order}


def _package_of(module: str, known: list[str]) -> str | None:
    return next((package for package in known if f"{module}.".startswith(f"{package}.")), None)


def _forbids(contract: dict[str, Any], importer: str, imported: str) -> bool:
    return importer in contract["source_modules"] and any(
        imported == module or imported.startswith(f"{module}.") for module in contract["forbidden_modules"]
    )


def _node(package: str) -> str:
    return package.replace(".", "_")


if __name__ == "__main__":
    sys.stdout.write(f"{diagram()}\n\n")
    for importer, imported in imports().items():
        sys.stdout.write(f"{importer}: {', '.join(imported) or 'nothing'}\n")
