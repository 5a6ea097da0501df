"""The live version of an object: it changes with what was asked of the object, not with its status. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.sentinel.objects.identity import metadata

if TYPE_CHECKING:
    from reside.model.stacks import K8sObject


def live_version(live: K8sObject | None) -> str | None:
    """Return the uid of a live object, and its generation, or its resource version if its kind has no generation.

    None: there is no object.
    """
    if live is None:
        return None
    meta = metadata(live)
    generation = meta.get("generation")
    version = f"version {meta.get('resourceVersion')}" if generation is None else f"generation {generation}"
    return f"{meta.get('uid')} {version}"
