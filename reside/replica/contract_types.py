"""Types of the Python modules that `reside contract types` writes.

A model accepts exactly the documents that the JSON Schema in the contract accepts, so nothing is converted: no text
becomes a number, and no null stands for a member that is missing. JSON has one type of number: 1.0 is an integer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from pydantic import (
    AllowInfNan,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    Strict,
    model_serializer,
)

from reside.model.manifest import ContractManifest

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")
LARGEST_INTEGER: Final = 2**53 - 1
"""The largest integer that every language reads as the same number."""


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _present(value: object) -> object:
    if value is None:
        raise ValueError("may be missing, but is null: leave it out")
    return value


Text = Annotated[str, Strict()]
Flag = Annotated[bool, Strict()]
Number = Annotated[float, Strict(), AllowInfNan(allow_inf_nan=False)]
Integer = Annotated[int, Strict(), BeforeValidator(_whole), Field(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
Anything = Any
Maybe = Annotated[T | None, BeforeValidator(_present)]
"""The type of a member that may be missing, but is not null; in Python, a missing one is None."""


class ContractModel(BaseModel):
    """An object of a contract. A member that was not set and is None is missing in its JSON."""

    model_config = ConfigDict(protected_namespaces=())

    @model_serializer(mode="wrap")
    def _without_missing(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        missing = {
            shown
            for name, field in type(self).model_fields.items()
            if name not in self.model_fields_set and getattr(self, name) is None
            for shown in (name, field.alias)
        }
        return {name: value for name, value in serialize(self).items() if name not in missing}


def contract(document: Mapping[str, Any]) -> ContractManifest:
    """Return the contract that a manifest's document describes, with its identity in this cluster."""
    return ContractManifest.model_validate({"type": "contract", **document}).resolved()
