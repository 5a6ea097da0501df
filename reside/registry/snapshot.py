"""What images say about themselves, kept in a file, for a machine that can't reach their registry.

Documents are found by their digest, and verified as those of a registry. A tag stands for the digest that it had.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reside.registry.reference import ImageReference


@dataclass(frozen=True)
class Snapshot:
    """Documents of some images.

    Attributes:
        latest: identity → digest of its tag `latest`.
        documents: digest → OCI manifest or configuration.
    """

    latest: Mapping[str, str] = field(default_factory=dict)
    documents: Mapping[str, bytes] = field(default_factory=dict)

    def digest_of(self, reference: ImageReference) -> str | None:
        """Return the digest that a reference names, or that its tag had; None if it is not known."""
        if reference.digest is not None:
            return reference.digest if reference.digest in self.documents else None
        return self.latest.get(reference.identity) if reference.tag in (None, "latest") else None

    def renamed(self, name_of: Callable[[str], str]) -> Snapshot:
        """Return the snapshot with other names for the same images."""
        return Snapshot({name_of(name): digest for name, digest in self.latest.items()}, self.documents)

    def to_json(self) -> str:
        """Return the snapshot as JSON."""
        documents = {digest: content.decode() for digest, content in sorted(self.documents.items())}
        return json.dumps({"latest": dict(sorted(self.latest.items())), "documents": documents}, indent=1)

    @staticmethod
    def from_json(text: str) -> Snapshot:
        """Return the snapshot in a JSON document; an empty one if it is something else."""
        try:
            found = json.loads(text)
            documents = {str(digest): content.encode() for digest, content in found["documents"].items()}
            return Snapshot({str(name): str(digest) for name, digest in found["latest"].items()}, documents)
        except (ValueError, KeyError, TypeError, AttributeError):
            return Snapshot()
