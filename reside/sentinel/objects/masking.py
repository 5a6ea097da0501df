"""Keeps secret values out of messages: what a Secret of the stack holds is replaced before a text leaves the room."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reside.model.stacks import K8sObject

MASK = "[secret]"
_SHORTEST = 4
"""Shorter values are not looked for: they would mask every second word, and guess nothing."""


def secret_values(objects: Iterable[K8sObject]) -> tuple[str, ...]:
    """All secret values of the objects, plain and in base64, longest first so that parts do not survive."""
    found: set[str] = set()
    for manifest in objects:
        if manifest.get("kind") != "Secret":
            continue
        for value in (manifest.get("stringData") or {}).values():
            found |= {str(value), base64.b64encode(str(value).encode()).decode()}
        for encoded in (manifest.get("data") or {}).values():
            found |= {str(encoded), *_decoded(str(encoded))}
    return tuple(sorted((value for value in found if len(value) >= _SHORTEST), key=len, reverse=True))


def mask(text: str, secrets: Iterable[str]) -> str:
    """``text`` without any of ``secrets``, whole or as the lines they consist of."""
    for secret in secrets:
        text = text.replace(secret, MASK)
        for line in secret.splitlines():
            if len(line) >= _SHORTEST:
                text = text.replace(line, MASK)
    return text


def _decoded(encoded: str) -> set[str]:
    try:
        return {base64.b64decode(encoded, validate=True).decode()}
    except (binascii.Error, UnicodeDecodeError):
        return set()
