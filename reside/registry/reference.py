"""Image references: `host[:port]/path[:tag][@sha256:…]`.

Invariants: the registry host is always explicit, because the full name authenticates an image; a reference without tag
and digest has the tag `latest`; if both are present, the digest decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from reside.registry.errors import InvalidReference

_HOST = re.compile(
    r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*(?::\d{1,5})?"
)
_PATH_PART = re.compile(r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*")
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_MAX_NAME = 255
_EXAMPLE = "registry.example.org/path/name:tag"


@dataclass(frozen=True)
class ImageReference:
    """One image in one registry."""

    registry: str
    repository: str
    tag: str | None = None
    digest: str | None = None

    @staticmethod
    def parse(text: str) -> ImageReference:
        """Parse a reference.

        Raises:
            InvalidReference: `text` is not a reference, or has no registry host.
        """
        name, at, digest = text.partition("@")
        if at and not _DIGEST.fullmatch(digest):
            raise InvalidReference(text, "its digest must be 'sha256:' and 64 hexadecimal digits")
        name, tag = _split_tag(text, name)
        registry, slash, repository = name.partition("/")
        if not slash or not _names_registry(registry):
            raise InvalidReference(text, f"it has no registry host: write the full name, such as {_EXAMPLE}")
        if not _HOST.fullmatch(registry):
            raise InvalidReference(text, f"{registry!r} is not a registry host: write host or host:port")
        if len(name) > _MAX_NAME or not all(_PATH_PART.fullmatch(part) for part in repository.split("/")):
            raise InvalidReference(
                text,
                f"{repository!r} is not a repository: use lower-case letters, digits and single separators, "
                f"such as {_EXAMPLE}",
            )
        return ImageReference(registry, repository, tag or (None if at else "latest"), digest or None)

    @property
    def identity(self) -> str:
        """The full name `registry/path`, without tag and digest."""
        return f"{self.registry}/{self.repository}"

    def pinned(self, digest: str) -> ImageReference:
        """Return a reference to this repository at `digest`, without a tag.

        Raises:
            InvalidReference: `digest` is not a SHA-256 digest.
        """
        if not _DIGEST.fullmatch(digest):
            raise InvalidReference(
                f"{self.identity}@{digest}", "its digest must be 'sha256:' and 64 hexadecimal digits"
            )
        return replace(self, tag=None, digest=digest)

    def tagged(self, tag: str) -> ImageReference:
        """Return a reference to this repository at `tag`, without a digest.

        Raises:
            InvalidReference: `tag` is not a valid tag.
        """
        _check_tag(f"{self.identity}:{tag}", tag)
        return replace(self, tag=tag, digest=None)

    @property
    def target(self) -> str:
        """The digest if there is one, else the tag: what to request from the registry."""
        return self.digest or self.tag or "latest"

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.identity}{tag}{digest}"


def _split_tag(text: str, name: str) -> tuple[str, str | None]:
    """Split off the tag; a colon before the last slash belongs to the port."""
    head, slash, last = name.rpartition("/")
    last, colon, tag = last.partition(":")
    if not colon:
        return name, None
    if slash:
        _check_tag(text, tag)
    return f"{head}{slash}{last}", tag


def _check_tag(text: str, tag: str) -> None:
    if not _TAG.fullmatch(tag):
        raise InvalidReference(text, "its tag must be 1 to 128 letters, digits, '_', '.' and '-'")


def _names_registry(first: str) -> bool:
    """Return whether the first part of a name is a host; `library/nginx` has none."""
    return "." in first or ":" in first or first == "localhost"
