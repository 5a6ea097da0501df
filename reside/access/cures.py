"""What to do about faults of a Kubernetes cluster or a machine, from the texts that report them. Pure."""

from __future__ import annotations

import re
from typing import Final

_CURES: Final = (
    (
        re.compile(r"exceeded quota: (?P<name>[^\s,]+)"),
        "raise the quota or use another namespace: `kubectl describe resourcequota {name}` shows it",
    ),
    (
        re.compile(r"failed quota: (?P<name>[^\s:]+): must specify"),
        "set defaults for containers by a LimitRange: `kubectl describe resourcequota {name}` shows the quota",
    ),
    (
        re.compile(r" is forbidden: User "),
        "ask an administrator for the rights of the Role `seed` in `reside cluster manifest`",
    ),
    (
        re.compile(r"incorrect passphrase"),
        "restore the passphrase (PULUMI_CONFIG_PASSPHRASE), or move the state away: the next run finds the cluster",
    ),
    (
        re.compile(r"no space left on device|database or disk is full", re.IGNORECASE),
        "free disk space, then run the command again",
    ),
)


def with_cure(text: str) -> str:
    """Return the text of an error, followed by what to do about it if that is known."""
    for pattern, cure in _CURES:
        if (match := pattern.search(text)) is not None:
            return f"{text}: {cure.format(**match.groupdict())}"
    return text
