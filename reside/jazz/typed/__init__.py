"""Typed values: classes with annotated fields declare schemas. The wire format follows jazz-tools' conventions.

Start at `CoMapModel`; docs/jazz.md has a section on it.
"""

from importlib.util import find_spec

if find_spec("pydantic") is None:
    raise ImportError("reside.jazz.typed needs pydantic: pip install 'reside-jazz[typed]'")

from reside.jazz.typed.accounts import AccountModel, ProfileModel
from reside.jazz.typed.base import Resolve, TypedValue
from reside.jazz.typed.creating import Inline
from reside.jazz.typed.errors import NotLoaded, ReferenceNotFound, SchemaError, SchemaMismatch, UnknownField
from reside.jazz.typed.feeds import FeedItem, FeedOf
from reside.jazz.typed.fields import field
from reside.jazz.typed.files import File
from reside.jazz.typed.lists import ListOf
from reside.jazz.typed.model import CoMapModel
from reside.jazz.typed.records import RecordOf
from reside.jazz.typed.resolving import EACH, tolerate
from reside.jazz.typed.texts import Text
from reside.jazz.typed.watching import DeepWatch

__all__ = [
    "EACH",
    "AccountModel",
    "CoMapModel",
    "DeepWatch",
    "FeedItem",
    "FeedOf",
    "File",
    "Inline",
    "ListOf",
    "NotLoaded",
    "ProfileModel",
    "RecordOf",
    "ReferenceNotFound",
    "Resolve",
    "SchemaError",
    "SchemaMismatch",
    "Text",
    "TypedValue",
    "UnknownField",
    "field",
    "tolerate",
]
