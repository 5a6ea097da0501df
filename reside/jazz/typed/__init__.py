"""Typed values: classes with annotated fields declare schemas, with jazz-tools' conventions on the wire.

Start at `CoMapModel`; docs/jazz.md has a page of it.
"""

from .base import Resolve, TypedValue
from .creating import Inline
from .errors import NotLoaded, ReferenceNotFound, SchemaError, SchemaMismatch
from .feeds import FeedItem, FeedOf
from .fields import field
from .files import File
from .lists import ListOf
from .model import CoMapModel
from .records import RecordOf
from .resolving import EACH, tolerate
from .texts import Text
from .watching import DeepWatch

__all__ = [
    "EACH",
    "CoMapModel",
    "DeepWatch",
    "FeedItem",
    "FeedOf",
    "File",
    "Inline",
    "ListOf",
    "NotLoaded",
    "RecordOf",
    "ReferenceNotFound",
    "Resolve",
    "SchemaError",
    "SchemaMismatch",
    "Text",
    "TypedValue",
    "field",
    "tolerate",
]
