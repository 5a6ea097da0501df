"""The bodies of calls: their common base and limits."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

MAX_TEXT = 2000
MAX_NAME = 255
CO_ID = r"^co_z[1-9A-HJ-NP-Za-km-z]{10,60}$"


class Body(BaseModel):
    """The body of a call: a JSON object without unknown members."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, hide_input_in_errors=True)
