"""The bodies of calls: their common base and limits, and their validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from reside.common.validation import describe_faults
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from typing import TypeVar

    from reside.replica import Call

    _B = TypeVar("_B", bound="Body")

MAX_TEXT = 2000
MAX_NAME = 255
CO_ID = r"^co_z[1-9A-HJ-NP-Za-km-z]{10,60}$"


class Body(BaseModel):
    """The body of a call: a JSON object without unknown members."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, hide_input_in_errors=True)


def parse(kind: type[_B], call: Call) -> _B:
    """Return the validated body of a call.

    Raises:
        InvalidInput: it is invalid; the message names the method and the members, never their values.
    """
    try:
        return kind.model_validate(call.body)
    except ValidationError as error:
        raise InvalidInput(f"{call.method}: {describe_faults(error, 'body')}") from None
