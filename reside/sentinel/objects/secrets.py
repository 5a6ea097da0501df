"""Secret references: where a Secret of a stack points to a value instead of holding it. Pure.

The annotation ``reside.io/secret-references`` maps data keys to ids of Jazz maps ``{value}``. Where a value comes from
is a look-up handed in, so that the same code fills in values with and without Jazz.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reside.model.constants import SECRET_REFERENCES_ANNOTATION
from reside.model.errors import InvalidInput, NotReady
from reside.model.stacks import object_key
from reside.sentinel.objects.identity import metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reside.model.stacks import K8sObject


@dataclass(frozen=True)
class Reference:
    """One data key of one Secret, and the map that holds its value."""

    object: str
    key: str
    target: str


def references(manifest: K8sObject) -> list[Reference]:
    """The references of an object; none for anything but a Secret.

    Raises:
        InvalidInput: the annotation is malformed.
    """
    text = (metadata(manifest).get("annotations") or {}).get(SECRET_REFERENCES_ANNOTATION)
    if manifest.get("kind") != "Secret" or text is None:
        return []
    name = object_key(manifest)
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(target, str) for target in found.values()):
        raise InvalidInput(
            f"{name}: annotation {SECRET_REFERENCES_ANNOTATION} must be a JSON object of data key → id of a Jazz map"
        )
    return [Reference(name, key, target) for key, target in sorted(found.items())]


def all_references(objects: Iterable[K8sObject]) -> list[Reference]:
    """The references of all objects."""
    return [reference for manifest in objects for reference in references(manifest)]


def filled(manifest: K8sObject, value_of: Callable[[Reference], str | None]) -> K8sObject:
    """The manifest with the values of its references; the given one is not changed.

    Raises:
        NotReady: a value is unknown; the message names key and map.
    """
    found = references(manifest)
    if not found:
        return manifest
    values: dict[str, str] = {}
    for reference in found:
        value = value_of(reference)
        if value is None:
            raise NotReady(
                f"{reference.object}: no value for its key {reference.key} ({reference.target}): neither Jazz, nor the "
                "vault, nor a live Secret has it"
            )
        values[reference.key] = value
    return manifest | {"stringData": (manifest.get("stringData") or {}) | values}


def live_value(live: K8sObject | None, key: str) -> str | None:
    """A value out of a live Secret."""
    encoded = ((live or {}).get("data") or {}).get(key)
    if not isinstance(encoded, str):
        return None
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
