"""Checks of a permission against the contract that defines it: its name, its instance, its params. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

import jsonschema_rs

from reside.model.errors import LoadRefused

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from reside.model.manifest import ContractManifest, RequiredPermission

_PATTERNS: Final = jsonschema_rs.RegexOptions()
"""Regular expressions of linear time, so that a contract's `pattern` can't block the leading Alpha."""


def check_permission(what: str, asked: RequiredPermission, contract: ContractManifest) -> str | None:
    """Check a permission that is required, asked for, or granted by a person; return its instance id.

    Args:
        what: what asks for the permission, for the error.
        asked: the permission.
        contract: the contract that should define it.

    Raises:
        LoadRefused: the contract has no such permission, or the params or the instance are invalid.
    """
    if asked.name not in contract.permissions:
        raise LoadRefused(
            f"{what}: contract {contract.identity} has no permission {asked.name!r}; "
            f"it has {', '.join(sorted(contract.permissions)) or 'none'}"
        )
    definition = contract.permissions[asked.name]
    if definition.params is not None:
        _check_params(f"{what}: params of permission {asked.name!r}", asked.params, definition.params)
    instance = asked.instance_id
    if instance is None and definition.instance_keys:
        instance = _instance(what, asked.name, definition.instance_keys, asked.params)
    if instance is not None:
        _check_unambiguous(what, asked.name, instance, contract.permissions)
    return instance


def _instance(what: str, permission: str, keys: Sequence[str], params: Mapping[str, Any]) -> str:
    """Return the instance id that the params contain, by the contract's `instanceKeys`."""
    missing = [name for name in keys if name not in params]
    if missing:
        raise LoadRefused(
            f"{what}: permission {permission!r} needs an instance: set instanceId or the params {', '.join(missing)}"
        )
    return ":".join(str(params[name]) for name in keys)


def _check_unambiguous(what: str, permission: str, instance: str, known: Iterable[str]) -> None:
    """Refuse an ambiguous key: permission `a` with instance `b` and permission `a:b` have the same key."""
    for other in known:
        if other.startswith(f"{permission}:") and f"{permission}:{instance}:".startswith(f"{other}:"):
            raise LoadRefused(
                f"{what}: the instance {instance!r} of permission {permission!r} is ambiguous with "
                f"permission {other!r}: use another instance"
            )


def _check_params(what: str, params: dict[str, Any], schema: dict[str, Any]) -> None:
    try:
        validator = jsonschema_rs.validator_for(schema, pattern_options=_PATTERNS, retriever=_refuse_remote)
    except ValueError as error:  # an invalid or too deep schema; jsonschema_rs.ValidationError is a ValueError
        reason = error.message if isinstance(error, jsonschema_rs.ValidationError) else str(error)
        raise LoadRefused(f"{what} can't be checked: the contract's schema is invalid: {reason}") from None
    try:
        validator.validate(params)
    except ValueError as error:
        if not isinstance(error, jsonschema_rs.ValidationError):
            raise LoadRefused(f"{what} can't be checked: {error}") from None
        where = "/".join(str(part) for part in error.instance_path) or "document"
        raise LoadRefused(f"{what}: {where}: {error.message}") from None


def _refuse_remote(uri: str) -> NoReturn:
    """Refuse a reference to another document: only the schema in the contract's image is used."""
    raise ValueError(f"{uri} is not in the contract's image, and remote schemas are not fetched")
