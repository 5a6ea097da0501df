"""Print the table of docs/settings.md, from the descriptions in the model of the settings.

    python -m tests.support.settings_page

A test compares the page with it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from pydantic.alias_generators import to_camel
from pydantic_core import PydanticUndefined

from reside.cli.cluster_options import OPTION_OF, ClusterOptions
from reside.seed.settings import BootstrapSettings, described

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

LEFT_OUT = ("images",)
"""Settings that a file gives (`imagesFile`, `--images`)."""
_ONLY_BOOTSTRAP = ("kube_context",)
"""Settings whose option is one of the command, not of `ClusterOptions`."""


def members() -> list[str]:
    """Return the settings, in alphabetical order."""
    return sorted(BootstrapSettings.model_fields.keys() - set(LEFT_OUT))


def option(member: str) -> str | None:
    """Return the option of `reside cluster bootstrap` that gives a setting; None if there is none."""
    name = OPTION_OF.get(member, member)
    if name not in {field.name for field in fields(ClusterOptions)} | set(_ONLY_BOOTSTRAP):
        return None
    return "--" + name.replace("_", "-")


def table() -> str:
    """Return the table."""
    rows = ["| setting | option | default | meaning |", "| --- | --- | --- | --- |"]
    for member in members():
        named = option(member)
        shown = _default(BootstrapSettings.model_fields[member])
        text = described(member).replace("|", "\\|")
        rows.append(f"| `{to_camel(member)}` | {f'`{named}`' if named else ''} | {shown} | {text} |")
    return "\n".join(rows) + "\n"


def _default(field: FieldInfo) -> str:
    value: Any = field.default
    if value in (None, PydanticUndefined, ()):
        return ""
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


if __name__ == "__main__":
    sys.stdout.write(table())
