"""Secret references: a Secret of a stack references a value instead of containing it. Pure.

The annotation `reside.io/secret-references` maps data keys to ids of Jazz maps `{value}`. The caller passes a function
that returns values, so that the same code works with and without Jazz.
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
    """One data key of one Secret, and the map that contains its value.

    Attributes:
        object: the Secret, as `Secret/name`.
        key: the data key.
        target: id of the Jazz map.
    """

    object: str
    key: str
    target: str


def references(obj: K8sObject) -> list[Reference]:
    """Return the references of an object; only a Secret has any.

    Raises:
        InvalidInput: the annotation is malformed.
    """
    text = (metadata(obj).get("annotations") or {}).get(SECRET_REFERENCES_ANNOTATION)
    if obj.get("kind") != "Secret" or text is None:
        return []
    name = object_key(obj)
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
    """Return the references of all objects."""
    return [reference for obj in objects for reference in references(obj)]


def filled(obj: K8sObject, value_of: Callable[[Reference], str | None]) -> K8sObject:
    """Return a copy of the object with the values of its references.

    Raises:
        NotReady: a value is unknown; the message names key and map.
    """
    found = references(obj)
    if not found:
        return obj
    values: dict[str, str] = {}
    for reference in found:
        value = value_of(reference)
        if value is None:
            raise NotReady(
                f"{reference.object}: no value for its key {reference.key} ({reference.target}) in Jazz, the vault or "
                "a live Secret: write it to that map"
            )
        values[reference.key] = value
    return obj | {"stringData": (obj.get("stringData") or {}) | values}


def live_value(live: K8sObject | None, key: str) -> str | None:
    """Return a value of a live Secret; None if there is none, or it is not text."""
    encoded = ((live or {}).get("data") or {}).get(key)
    if not isinstance(encoded, str):
        return None
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
