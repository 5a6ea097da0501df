"""What codes, statuses and reasons mean, and what to do about them: the one table of `explain` and `describe`. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from reside.cli.explanation import POLICY, Explanation
from reside.cli.known_codes import CODES
from reside.cli.known_reasons import REASONS
from reside.policy.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def explanations() -> list[Explanation]:
    """Return all explanations: codes, reasons and rules of the policy."""
    return [*CODES, *REASONS, *_rules()]


def explain(code: str) -> list[Explanation]:
    """Return what a code means, in each topic that has it; upper and lower case are the same.

    A whole reason, as `describe` shows it, is found, too. The list is empty if nothing is known.
    """
    found = [each for each in explanations() if each.code.casefold() == code.casefold()]
    return found or list(causes([code]))


def causes(texts: Iterable[str | None]) -> Iterator[Explanation]:
    """Yield the explanation of each text that tells a known reason, without repetition."""
    seen = set()
    for text in texts:
        found = next((each for each in REASONS if each.pattern and text and re.search(each.pattern, text)), None)
        if found is not None and found.code not in seen:
            seen.add(found.code)
            yield found


def with_cure(text: str) -> str:
    """Return the text of a reason, followed by what to do about it if that is known."""
    known = next(causes([text]), None)
    return text if known is None else f"{text}; to do: {known.cure}"


def _rules() -> Iterator[Explanation]:
    for name, rule in RULES.items():
        level = f"is {rule.level}, {'and no setting changes that' if rule.is_fixed else 'unless settings change that'}"
        yield Explanation(name, POLICY, f"{rule.reason} It {level}.", rule.cure)
