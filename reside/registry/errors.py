"""Errors of the registry client.

    RegistryError               base; has the image reference
    ├── RegistryUnavailable     transient: not reachable, too slow, or status 5xx/429
    ├── InvalidReference        not an image reference, or without a registry host
    ├── ImageNotFound           the registry has no such image
    ├── RegistryDenied          credentials are missing or not sufficient
    ├── MalformedImage          the content is not an image, or does not have its digest
    ├── LabelsDiffer            the platforms of an index carry different labels
    └── UnsupportedPlatform     no image for Linux on the required architecture

Invariant: messages contain neither credentials nor response bodies, so they may be logged and shown.
"""

from __future__ import annotations

from typing import ClassVar


class RegistryError(Exception):
    """Base of all errors of the registry client; `image` is the reference.

    Attributes:
        transient: whether another attempt may succeed although nothing is changed; see `reside.common.transience`.
    """

    transient: ClassVar[bool] = False

    def __init__(self, image: str, message: str) -> None:
        super().__init__(f"image {image!r}: {message}")
        self.image = image
        self.reason = message

    def __reduce__(self) -> tuple[type[RegistryError], tuple[str, str]]:
        """Support pickling: the constructor takes more than the message."""
        return type(self), (self.image, self.reason)


class RegistryUnavailable(RegistryError):  # noqa: N818 - named after the state, like HTTP's 503
    """The registry can't be reached at the moment; retry later."""

    transient = True


class InvalidReference(RegistryError):  # noqa: N818 - named after what is wrong
    """Not an image reference."""


class ImageNotFound(RegistryError):  # noqa: N818 - named after what is wrong
    """The registry has no such image."""


class RegistryDenied(RegistryError):  # noqa: N818 - named after what is wrong
    """The registry refuses the operation."""


class MalformedImage(RegistryError):  # noqa: N818 - named after what is wrong
    """The registry sent content that is not a readable image."""


class LabelsDiffer(RegistryError):  # noqa: N818 - named after what is wrong
    """The platforms of an index carry different labels."""


class UnsupportedPlatform(RegistryError):  # noqa: N818 - named after what is wrong
    """The image has no variant for Linux on the required architecture."""
