"""What can go wrong with an image in a registry, drawn as a tree.

    RegistryError               carries the image it is about
    ├── RegistryUnavailable     transient: not reachable, too slow, or answering 5xx/429; come back later
    ├── InvalidReference        not a reference, or one without a registry's name
    ├── ImageNotFound           the registry answers, but has no such image
    ├── RegistryDenied          the registry asks for credentials that are missing or not sufficient
    ├── MalformedImage          what the registry sent is no image, or not the one that its digest names
    ├── LabelsDiffer            the platforms of one index carry different labels
    └── UnsupportedPlatform     no image for Linux on the wanted architecture

Invariant: messages hold no credentials and no response bodies, so they may be logged and shown.
"""

from __future__ import annotations


class RegistryError(Exception):
    """Any failure about an image; ``image`` is the reference in question."""

    def __init__(self, image: str, message: str) -> None:
        super().__init__(f"image {image!r}: {message}")
        self.image = image
        self.reason = message

    def __reduce__(self) -> tuple[type[RegistryError], tuple[str, str]]:
        """Survive pickling, although the constructor takes more than the message."""
        return type(self), (self.image, self.reason)


class RegistryUnavailable(RegistryError):  # noqa: N818 - named after the state, like HTTP's 503
    """The registry can't be reached at present; trying again later is right."""


class InvalidReference(RegistryError):  # noqa: N818 - named after what is wrong
    """Not an image reference."""


class ImageNotFound(RegistryError):  # noqa: N818 - named after what is wrong
    """The registry has no such image."""


class RegistryDenied(RegistryError):  # noqa: N818 - named after what is wrong
    """The registry refuses the operation."""


class MalformedImage(RegistryError):  # noqa: N818 - named after what is wrong
    """What the registry sent is not an image that can be read."""


class LabelsDiffer(RegistryError):  # noqa: N818 - named after what is wrong
    """The platforms of an index carry different labels."""


class UnsupportedPlatform(RegistryError):  # noqa: N818 - named after what is wrong
    """The image has no variant for Linux on the wanted architecture."""
