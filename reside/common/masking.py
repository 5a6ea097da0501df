"""Keep secret values out of messages and documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

MASK: Final = "[secret]"
"""Replaces a secret in a text, as in Pulumi's own output."""
MASKED_VALUE: Final = "***"
"""Replaces a whole value in a document. It is part of stored reports: do not change it."""
SHORTEST: Final = 4
"""Minimum length of a secret that is masked. Shorter ones would mask ordinary words."""


def mask(text: str, secrets: Iterable[str]) -> str:
    """Return `text` with each secret, and each line of a secret, replaced.

    Args:
        text: a message from another program.
        secrets: the values, longest first, so that replacing one never leaves a part of another.
    """
    for secret in secrets:
        text = text.replace(secret, MASK)
        for line in secret.splitlines():
            if len(line) >= SHORTEST:
                text = text.replace(line, MASK)
    return text


def mask_values(members: Iterable[str]) -> dict[str, str]:
    """Return a document with these members and masked values."""
    return dict.fromkeys(members, MASKED_VALUE)
