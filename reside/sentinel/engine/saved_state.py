"""Reads what the engine has stored of a stack, to find out whether it is damaged. Pure.

A power loss, a full disk or a faulty one can leave a file that is empty, cut off, or filled with something else.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import orjson

_SALT: Final = re.compile(r"^encryptionsalt: (v1:\S+:\S+)\n", re.MULTILINE)
"""A whole line: without its end, the file was cut off."""


_KEY: Final = re.compile(rb"^encryptedkey: \S+\n", re.MULTILINE)


def is_state(content: bytes | None) -> bool:
    """Return whether this is the state file of a stack, as the file backend writes it."""
    return _resources(content) is not None


def has_pending(content: bytes | None) -> bool:
    """Return whether a state contains operations that were pending when the engine died or was terminated."""
    if b'"pending_operations"' not in (content or b""):
        return False  # the usual case, without parsing a large state
    return bool((_latest(content) or {}).get("pending_operations"))


def salt_in_state(content: bytes | None) -> str | None:
    """Return the encryption salt with which the secrets of a state are encrypted; None if it has none."""
    latest = _latest(content) or {}
    match latest.get("secrets_providers"):
        case {"state": {"salt": str(salt)}} if _SALT.match(settings_with(salt)):
            return salt
    return None


def salt_in_settings(content: bytes | None) -> str | None:
    """Return the encryption salt in the settings of a stack; None if there is none."""
    try:
        found = _SALT.search((content or b"").decode())
    except UnicodeDecodeError:
        return None
    return found[1] if found else None


def settings_of(deployment: dict[str, Any]) -> str | None:
    """Return the settings of a stack with which an exported state is encrypted; None if it has none."""
    match deployment.get("secrets_providers"):
        case {"type": "passphrase", "state": {"salt": str(salt)}}:
            return settings_with(salt)
        case {"type": "cloud", "state": {"url": str(url), "encryptedkey": str(key)}}:
            return f"secretsprovider: {json.dumps(url)}\nencryptedkey: {key}\n"
    return None


def secrets_provider_of(deployment: dict[str, Any]) -> str:
    """Return what encrypts the secrets of an exported state: `passphrase`, or the key of a service."""
    match deployment.get("secrets_providers"):
        case {"type": "cloud", "state": {"url": str(url)}}:
            return url
    return "passphrase"


def is_settings(content: bytes | None) -> bool:
    """Return whether these are settings of a stack that are whole."""
    return salt_in_settings(content) is not None or _KEY.search(content or b"") is not None


def settings_with(salt: str) -> str:
    """Return the settings of a stack with this encryption salt."""
    return f"encryptionsalt: {salt}\n"


def _resources(content: bytes | None) -> list[dict[str, Any]] | None:
    """Return the resources of a state, or None if it is no state."""
    latest = _latest(content)
    if latest is None:
        return None
    resources = latest.get("resources")
    if resources is None:
        return []
    if isinstance(resources, list) and all(isinstance(each, dict) and "urn" in each for each in resources):
        return resources
    return None


def _latest(content: bytes | None) -> dict[str, Any] | None:
    """Return the newest checkpoint in a state, empty for a stack without operations; None if it is no state."""
    document = _parsed(content or b"")
    match document:
        case {"version": int(), "checkpoint": {"stack": str(), **checkpoint}}:
            latest = checkpoint.get("latest")
            return {} if latest is None else latest if isinstance(latest, dict) else None
    return None


def _parsed(content: bytes) -> Any:
    """Return a parsed document; None if it is damaged."""
    try:
        return orjson.loads(content)
    except ValueError:  # damaged, or a number that only Python reads
        pass
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
