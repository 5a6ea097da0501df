"""What a rule is, and what its violation is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from reside.policy.context import Context
from reside.policy.shapes import Manifest

Level = Literal["advisory", "mandatory"]
LEVELS: Final[tuple[Level, ...]] = ("advisory", "mandatory")
"""A violation of a mandatory rule refuses the stack. One of an advisory rule is shown."""

Judge = Callable[[Manifest, Context], Iterator[str]]
"""Yields a message for each way in which an object violates a rule."""


@dataclass(frozen=True)
class Rule:
    """A rule.

    Attributes:
        judge: finds the violations of one object.
        reason: why the rule exists.
        cure: how to satisfy it.
        level: its level, unless settings change it.
        is_fixed: whether no setting changes its level, because the Sentinel relies on the rule.
    """

    judge: Judge
    reason: str
    cure: str
    level: Level = "mandatory"
    is_fixed: bool = False


@dataclass(frozen=True)
class Violation:
    """One violated rule: its name, the object as `Kind/name`, what is wrong and how to correct it."""

    rule: str
    object: str
    message: str
    level: Level = "mandatory"
    reason: str = ""
    cure: str = ""

    def __str__(self) -> str:
        if self.level == "advisory":
            return f"{self.object} should obey {self.rule} (advisory): {self.message}"
        return f"{self.object} breaks {self.rule}: {self.message}"
