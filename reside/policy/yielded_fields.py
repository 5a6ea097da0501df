"""Fields of an object that its stack leaves to others, such as to an autoscaler. Pure.

The annotation `reside.io/yield` names them: paths separated by commas, for example
`spec.replicas, metadata.annotations["example.com/seen"]`. Somebody else decides the value of such a field, and no rule
sees it. So only fields whose value no rule judges can be yielded. `allowed_yields` ignores all others, whatever was
checked before.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from reside.policy.shapes import Manifest, mapping

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reside.policy.context import Context

YIELD_ANNOTATION: Final = "reside.io/yield"
MOST_PATHS: Final = 32
"""Number of paths that an object may yield."""

Path = tuple[str, ...]
"""Names of members, from the object to the field."""

_ANY: Final = "*"
_TEMPLATE_ANNOTATIONS: Final = ("spec", "template", "metadata", "annotations", _ANY)
_OF_ALL_KINDS: Final[tuple[Path, ...]] = (("metadata", "annotations", _ANY), ("metadata", "labels", _ANY))
_OF_KIND: Final[dict[str, tuple[Path, ...]]] = {
    "Deployment": (("spec", "replicas"), _TEMPLATE_ANNOTATIONS),
    "StatefulSet": (("spec", "replicas"), _TEMPLATE_ANNOTATIONS),
    "Job": (("spec", "parallelism"),),
    "ConfigMap": (("data",), ("data", _ANY), ("binaryData",), ("binaryData", _ANY)),
    "PersistentVolumeClaim": (("spec", "resources", "requests", "storage"),),
}
"""Kind → fields that can be yielded; none of them is judged by a rule."""
_RESERVED_PREFIXES: Final = ("reside.io/", "pulumi.com/")
_RESERVED_NAMES: Final = ("app.kubernetes.io/managed-by",)
_SEPARATOR: Final = re.compile(r"\s*,\s*")
_SEGMENT: Final = re.compile(r"""(?:^|\.)([A-Za-z0-9_/-]+)|\["([^"\[\],]+)"\]""")


def parse_path(text: str) -> Path | None:
    """Return the path that a text such as `data["a.b"]` names; None if it names none."""
    found: list[str] = []
    position = 0
    while position < len(text):
        segment = _SEGMENT.match(text, position)
        if segment is None:
            return None
        found.append(segment[1] or segment[2])
        position = segment.end()
    return tuple(found) or None


def allowed_yields(manifest: Manifest) -> tuple[Path, ...]:
    """Return the fields that an object yields, without those that it must not."""
    paths = (parse_path(text) for text in _texts(manifest)[:MOST_PATHS])
    return tuple(path for path in paths if path is not None and _is_allowed(manifest, path))


def yielded_fields(manifest: Manifest, _: Context) -> Iterator[str]:
    """Let an object yield only fields that no rule judges."""
    texts = _texts(manifest)
    if len(texts) > MOST_PATHS:
        yield f"annotation {YIELD_ANNOTATION} names {len(texts)} fields: name at most {MOST_PATHS}"
    for text in texts[:MOST_PATHS]:
        path = parse_path(text)
        if path is None:
            yield f'annotation {YIELD_ANNOTATION} names no field by {text!r}: write a path such as data["a.b"]'
        elif not _is_allowed(manifest, path):
            yield f"field {text} can't be left to others: remove it from the annotation {YIELD_ANNOTATION}"


def _texts(manifest: Manifest) -> list[str]:
    value = mapping(manifest, "metadata", "annotations").get(YIELD_ANNOTATION)
    if value is None:
        return []
    return [text for text in _SEPARATOR.split(value.strip()) if text] if isinstance(value, str) else [str(value)]


def _is_allowed(manifest: Manifest, path: Path) -> bool:
    kind = manifest.get("kind")
    if path[-1].startswith(_RESERVED_PREFIXES) or path[-1] in _RESERVED_NAMES:
        return False
    of_kind = _OF_KIND.get(kind, ()) if isinstance(kind, str) else ()
    return any(_matches(path, pattern) for pattern in (*_OF_ALL_KINDS, *of_kind))


def _matches(path: Path, pattern: Path) -> bool:
    return len(path) == len(pattern) and all(want in (_ANY, name) for name, want in zip(path, pattern, strict=True))
