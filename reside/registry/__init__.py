"""Images in an OCI registry: their references, digests and labels. Knows nothing of ReSide."""

from reside.registry.client import Blob, RegistryClient
from reside.registry.errors import (
    ImageNotFound,
    InvalidReference,
    LabelsDiffer,
    MalformedImage,
    RegistryDenied,
    RegistryError,
    RegistryUnavailable,
    UnsupportedPlatform,
)
from reside.registry.reference import ImageReference

__all__ = [
    "Blob",
    "ImageNotFound",
    "ImageReference",
    "InvalidReference",
    "LabelsDiffer",
    "MalformedImage",
    "RegistryClient",
    "RegistryDenied",
    "RegistryError",
    "RegistryUnavailable",
    "UnsupportedPlatform",
]
