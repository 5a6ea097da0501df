"""What an explanation is, and the topics of explanations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CALL: Final = "call error"
VERSION: Final = "version status"
REQUEST: Final = "request status"
PERMISSION: Final = "permission status"
OBJECT: Final = "object state"
STACK: Final = "object report"
POD: Final = "Kubernetes"
LOAD: Final = "load"
PLATFORM: Final = "platform"
POLICY: Final = "policy rule"


@dataclass(frozen=True)
class Explanation:
    """What one code means.

    Attributes:
        code: the code, as it is shown; two topics may have the same one.
        topic: what has the code.
        meaning: what it says.
        cure: what to do about it.
        pattern: regular expression of texts that tell it; None if no text does.
    """

    code: str
    topic: str
    meaning: str
    cure: str
    pattern: str | None = None

    def document(self) -> dict[str, str]:
        """Return the JSON form."""
        return {"code": self.code, "topic": self.topic, "meaning": self.meaning, "cure": self.cure}
