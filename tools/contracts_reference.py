"""Write docs/contracts.md, the contracts of ReSide itself, from the code: `python tools/contracts_reference.py`.

A unit test fails if the page is not what this program writes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # a script's path does not contain the parent folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reside.model.manifest import ContractManifest, DisplayText

PAGE: Final = ROOT / "docs/contracts.md"
_MODEL: Final = "model.md"
_HEAD: Final = f"""\
# Contracts

The contracts that ReSide itself has, with their permissions and methods. `python tools/contracts_reference.py` writes
this page from the code. [{_MODEL}]({_MODEL}#10-rpc) has the bodies and responses of the methods, and how to call them.
`reside permission grant ACCOUNT REPLICA PERMISSION` grants a permission.
"""


def contracts() -> list[ContractManifest]:
    """Return the contracts of the platform, and those of the shipped replicas."""
    from reside.alpha.contract import PACKAGED  # noqa: PLC0415 - after the path is set
    from reside.model.manifest import ContractManifest, parse_manifest  # noqa: PLC0415

    files = sorted((ROOT / "replicas").glob("*/*/contract.yaml"))
    shipped = [parse_manifest(yaml.safe_load(file.read_text())) for file in files]
    return [*PACKAGED.values(), *(each for each in shipped if isinstance(each, ContractManifest))]


def page() -> str:
    """Return the whole page."""
    return _HEAD + "".join(f"\n{part}\n" for contract in contracts() for part in _contract(contract))


def _contract(contract: ContractManifest) -> Iterator[str]:
    yield f"## {contract.identity.rpartition('/')[2]}"
    yield f"`{contract.identity}`"
    about = contract.display_info.get("en")
    if about is not None:
        yield f"{about.title}: {about.description}" if about.description else about.title
    rows = ((name, permission.display_info) for name, permission in contract.permissions.items())
    yield from _table("permission", rows)
    methods = ((name, method.display_info) for name, method in contract.methods.items())
    yield from _table("method", methods)


def _table(kind: str, rows: Iterable[tuple[str, dict[str, DisplayText]]]) -> Iterator[str]:
    lines = [f"| `{name}` | {_meaning(text)} |" for name, text in rows]
    if lines:
        yield "\n".join([f"| {kind} | meaning |", "| --- | --- |", *lines])
    else:
        yield f"It has no {kind}s."


def _meaning(texts: dict[str, DisplayText]) -> str:
    text = texts["en"]
    return f"{text.title}. {text.description}" if text.description else text.title


if __name__ == "__main__":
    PAGE.write_text(page())
