"""A client of OCI registries: image references, digests, labels, and uploads. Independent of ReSide."""

from reside.registry.assemble import Extension
from reside.registry.client import RegistryClient
from reside.registry.documents import Description
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
from reside.registry.snapshot import Snapshot
from reside.registry.upload import Blob, Bytes, FileBlob

__all__ = [
    "Blob",
    "Bytes",
    "Description",
    "Extension",
    "FileBlob",
    "ImageNotFound",
    "ImageReference",
    "InvalidReference",
    "LabelsDiffer",
    "MalformedImage",
    "RegistryClient",
    "RegistryDenied",
    "RegistryError",
    "RegistryUnavailable",
    "Snapshot",
    "UnsupportedPlatform",
]
