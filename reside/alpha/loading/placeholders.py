"""Placeholders in the `params` and `instanceId` of a required permission, such as `{replica.name}`.

They are resolved when a load request is validated (docs/model.md, section 2), so that an approver sees the final
values.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from reside.model.errors import LoadRefused

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"\{(replica\.[A-Za-z.]*)\}")


def replica_values(name: str, identity: str) -> dict[str, str]:
    """What can be named in a placeholder of the replica `name` made from images of `identity`."""
    return {"replica.name": name, "replica.identity": identity}


def substitute(value: Any, values: Mapping[str, str]) -> Any:
    """`value` (JSON) with the placeholders in all its strings, at any depth, replaced; other braces stay.

    Raises:
        LoadRefused: a placeholder that is none of `values`.
    """
    if isinstance(value, str):
        return _PLACEHOLDER.sub(lambda match: _lookup(match.group(1), values), value)
    if isinstance(value, list | tuple):
        return [substitute(item, values) for item in value]
    if isinstance(value, dict):
        return {key: substitute(item, values) for key, item in value.items()}
    return value


def _lookup(name: str, values: Mapping[str, str]) -> str:
    try:
        return values[name]
    except KeyError:
        raise LoadRefused(
            f"placeholder {{{name}}} of a required permission is unknown: use {', '.join(f'{{{v}}}' for v in values)}"
        ) from None
