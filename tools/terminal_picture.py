"""Write docs/pictures/terminal.svg, what the command shows of a load: `python tools/terminal_picture.py`.

The picture is made by the code that prints on a terminal, from an example. A unit test fails if it is not current.
"""

from __future__ import annotations

import re
import sys
import time
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # a script's path does not contain the parent folder

if TYPE_CHECKING:
    from reside.model.entities import LoadRequest

PICTURE: Final = ROOT / "docs/pictures/terminal.svg"
_FORMAT: Final = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
"""Without fonts from another server: a viewer of the page would load them."""
_REGISTRY: Final = "ghcr.io/acme/shop"
_DIGEST: Final = "sha256:7af8b58ac2bd124354d9cfbf60830c6ce7568b147544e9f7fa2ec2975a1fde8d"


def picture() -> str:
    """Return the picture as SVG."""
    from reside.cli import output  # noqa: PLC0415 - after the path is set

    console = Console(record=True, width=100, file=StringIO(), force_terminal=True, color_system="truecolor")
    before, output.console = output.console, console  # tables fit the console that they are printed on
    try:
        _print(console)
    finally:
        output.console = before
    return console.export_svg(title="reside", unique_id="reside", code_format=_FORMAT)


def _print(console: Console) -> None:
    from reside.cli.listing import as_table  # noqa: PLC0415 - as above
    from reside.cli.rendered_request import render_request  # noqa: PLC0415
    from reside.cli.replicas import COLUMNS  # noqa: PLC0415

    _type(console, f"reside replica load {_REGISTRY}/checkout:v2")
    console.print(render_request(_request()))
    console.print("Approve? [y/N]: y", highlight=False, markup=False)
    console.print("checkout (id 5) version 2 is running\n", highlight=False)
    _type(console, "reside replica list")
    console.print(as_table(_replicas(), COLUMNS))


def _type(console: Console, command: str) -> None:
    console.print(Text.assemble(("$ ", "green"), (command, "bold")))


def _request() -> LoadRequest:
    from reside.model.entities import (  # noqa: PLC0415
        ApproveRequest,
        GrantedPermission,
        LoadRequest,
        ReplicaChoice,
        Requirement,
    )
    from reside.model.manifest import ReplicaInfo  # noqa: PLC0415

    stock = Requirement(
        contract=f"{_REGISTRY}/contracts/stock.v1",
        permissions=(GrantedPermission(permission="reserve", params={"items": 20}),),
        replicas=(ReplicaChoice(id=4, name="stock", account="co_zStock"),),
    )
    content = ApproveRequest(
        info=ReplicaInfo.model_validate(
            {"name": "checkout", "class": "long-running", "exclusive": True, "scalable": True}
        ),
        name="checkout",
        identity=f"{_REGISTRY}/checkout",
        digest=_DIGEST,
        requirements={"stock": stock},
    )
    changes = [
        {"action": "same", "object": "Service/checkout"},
        {"action": "same", "object": "Deployment/checkout-1"},
        {"action": "create", "object": "Deployment/checkout-2"},
    ]
    return LoadRequest(
        id=12,
        status="requires-approval",
        image=f"{_REGISTRY}/checkout:v2",
        owner="co_zgCRLMHPwuUDXkqWK4RgMxGtVze",
        approve_request=content,
        preview={"changes": changes},
    )


def _replicas() -> list[dict[str, Any]]:
    now, day = int(time.time() * 1000), 86_400_000
    rows = [
        (1, "alpha", 3, "running", 8 * day, "a4926a86c5c3", None),
        (2, "kubernetes-sentinel", 3, "running", 8 * day, "5ce0053d8705", None),
        (4, "stock", 1, "running", 3 * day, "66c8b986b05f", None),
        (5, "checkout", 2, "running", 12_000, "7af8b58ac2bd", None),
        (6, "report", 4, "error", 300_000, "f8801680d007", "pod report-4-x2v: ImagePullBackOff: no such image"),
    ]
    names = ("id", "name", "version", "status", "since", "digest", "note")
    return [dict(zip(names, (*row[:4], now - row[4], *row[5:]), strict=True)) for row in rows]


if __name__ == "__main__":
    PICTURE.write_text(picture())
