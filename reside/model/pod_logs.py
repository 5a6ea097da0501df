"""The end of the log of one pod, as the Sentinel gives it to an operator (docs/model.md, section 3)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class PodLog(BaseModel):
    """What a pod of a replica wrote last.

    Attributes:
        pod: its name.
        text: the end of its log.
        is_cut: whether lines before it were left out to keep the answer small, although they were asked for.
        error: why the log can't be read, in place of a text.
    """

    model_config = ConfigDict(frozen=True)

    pod: str
    text: str = ""
    is_cut: bool = False
    error: str | None = None
