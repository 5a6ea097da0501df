"""Mask secrets: the secret values of Kubernetes objects, and objects as they may be shown."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from reside.common.masking import SHORTEST, mask_values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reside.model.stacks import K8sObject


def secret_values(objects: Iterable[K8sObject]) -> tuple[str, ...]:
    """Return all secret values of the objects, plain and in base64, longest first, as `mask` requires."""
    found: set[str] = set()
    for obj in objects:
        if obj.get("kind") != "Secret":
            continue
        for value in (obj.get("stringData") or {}).values():
            found |= {str(value), base64.b64encode(str(value).encode()).decode()}
        for encoded in (obj.get("data") or {}).values():
            found |= {str(encoded), *_decoded(str(encoded))}
    return tuple(sorted((value for value in found if len(value) >= SHORTEST), key=len, reverse=True))


def masked(obj: K8sObject) -> K8sObject:
    """Return the object with the values of a Secret masked; its keys stay visible."""
    if obj.get("kind") != "Secret":
        return obj
    return obj | {part: mask_values(obj[part]) for part in ("data", "stringData") if isinstance(obj.get(part), dict)}


def _decoded(encoded: str) -> set[str]:
    try:
        return {base64.b64decode(encoded, validate=True).decode()}
    except (binascii.Error, UnicodeDecodeError):
        return set()
