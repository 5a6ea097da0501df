"""Keep secret values out of messages and documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

MASK: Final = "[secret]"
"""Stands in a text in place of a secret, as in Pulumi's own output."""
MASKED_VALUE: Final = "***"
"""Stands in a document in place of a whole value. It is part of stored reports: do not change it."""
SHORTEST: Final = 4
"""Characters of the shortest secret that is looked for. Shorter ones would mask every second word."""


def mask(text: str, secrets: Iterable[str]) -> str:
    """Return `text` without any of the secrets, whole or as the lines that they consist of.

    Args:
        text: a message from outside.
        secrets: the values; longest first, so that no part of one survives the replacement of another.
    """
    for secret in secrets:
        text = text.replace(secret, MASK)
        for line in secret.splitlines():
            if len(line) >= SHORTEST:
                text = text.replace(line, MASK)
    return text


def mask_values(members: Iterable[str]) -> dict[str, str]:
    """Return a document with these members, whose values are masked."""
    return dict.fromkeys(members, MASKED_VALUE)
