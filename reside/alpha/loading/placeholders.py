"""Placeholders in the `params` and `instanceId` of a required permission, such as `{replica.name}`.

They are replaced when a load request is validated, so that an approver sees the final values (docs/model.md,
section 2).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from reside.model.errors import LoadRefused

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"\{(replica\.[A-Za-z.]*)\}")


def replica_values(name: str, identity: str) -> dict[str, str]:
    """Return the values of all placeholders for the replica `name` whose images have this identity."""
    return {"replica.name": name, "replica.identity": identity}


def substitute(value: Any, values: Mapping[str, str]) -> Any:
    """Return `value` (JSON) with the placeholders in its strings replaced, at any depth; other braces stay.

    Raises:
        LoadRefused: a placeholder is not in `values`.
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
