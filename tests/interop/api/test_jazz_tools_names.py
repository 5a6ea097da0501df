"""Every name of jazz-tools in the table of docs/jazz.md is one of the pinned version."""

import re

from support.jazz_server import interop_packages
from support.jazz_tools_names import rows


def test_every_name_is_declared_by_jazz_tools() -> None:
    folder = interop_packages() / "node_modules" / "jazz-tools" / "dist"
    declared = {
        word for file in folder.rglob("*.d.ts") for word in re.findall(r"\w+", file.read_text(encoding="utf-8"))
    }
    names = {part for theirs, _ in rows() for name in theirs for part in name.split(".")}
    assert names - declared == set()
