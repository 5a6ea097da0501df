"""Turns the end of a failed engine run into one error of errors.py.

The command line says what went wrong in words only. These are the words of the pinned versions (engine 3.259, provider
4.25); tests/integration/engine/test_failures.py asks the real ones.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from reside.common.masking import mask
from reside.sentinel.engine.errors import (
    ApplyConflict,
    ApplyRejected,
    EngineBroken,
    EngineError,
    EngineKilled,
    EngineUnavailable,
    StackLocked,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reside.sentinel.engine.events import Complaint

LONGEST: Final = 400
"""Messages are cut to this many characters: they are shown in lists and stored in Jazz."""

_CONFLICT = re.compile(
    r"Apply failed with \d+ conflicts?: (?P<fields>conflicts? with \"(?P<manager>[^\"]+)\".*)", re.DOTALL
)
_UNREACHABLE = re.compile(
    r"cluster is unreachable|connection refused|connection reset|i/o timeout|no such host|TLS handshake timeout"
    r"|no route to host|unable to load schema information|the server is currently unable|etcdserver:|context deadline"
    r"|Too many requests|unexpected EOF|ServiceUnavailable|network is unreachable",
    re.IGNORECASE,
)
_LOCKED = re.compile(r"the stack is currently locked by")
_PASSPHRASE = re.compile(r"incorrect passphrase|passphrase must be set|failed to decrypt|message authentication failed")
_ANNOUNCEMENT = re.compile(r"(update|preview|destroy) failed|.*returned an unhandled exception.*")
_NOISE = re.compile(
    r"\d+ errors? occurred:"
    r'|\* the Kubernetes API server reported that "[^"]*" failed to fully initialize or become live:'
    r'|resource "[^"]*" was not successfully (created|updated) by the Kubernetes API server:|^error: '
)
"""Words of the provider around the API server's own message."""


def diagnose(code: int, complaints: Sequence[Complaint], stderr: str, secrets: Sequence[str]) -> EngineError:
    """The error that an engine run with exit code ``code`` (negative: the signal that killed it) stands for."""
    if code < 0:
        return EngineKilled(f"the engine was ended by signal {-code}; the next operation repairs the stack")
    return (
        _of_the_whole(complaints, stderr, secrets)
        or _of_an_object(complaints, secrets)
        or EngineBroken(f"the engine failed with code {code}: {_best(complaints, stderr, secrets)}")
    )


def _of_the_whole(complaints: Sequence[Complaint], stderr: str, secrets: Sequence[str]) -> EngineError | None:
    """An error that no single object is to blame for."""
    everything = "\n".join([*(complaint.message for complaint in complaints), stderr])
    if _LOCKED.search(everything):
        return StackLocked("the stack is locked by another engine that is running now")
    if _PASSPHRASE.search(everything):
        return EngineBroken("the state cannot be decrypted: start with the passphrase that the state was made with")
    if _UNREACHABLE.search(everything):
        return EngineUnavailable("the Kubernetes API did not answer: " + _best(complaints, stderr, secrets))
    return None


def _of_an_object(complaints: Sequence[Complaint], secrets: Sequence[str]) -> EngineError | None:
    """What the API server had against an object; a conflict comes first, because it names a culprit."""
    for complaint in complaints:
        conflict = _CONFLICT.search(complaint.message)
        if conflict:
            return _conflict(conflict, complaint, secrets)
    for complaint in complaints:
        if complaint.object:
            return ApplyRejected(_short(complaint.message, secrets), complaint.object)
    return None


def _conflict(found: re.Match[str], complaint: Complaint, secrets: Sequence[str]) -> ApplyConflict:
    manager = found["manager"]
    fields = _short(found["fields"], secrets)
    return ApplyConflict(f"{manager} manages fields that the stack sets: {fields}", complaint.object, manager)


def _best(complaints: Sequence[Complaint], stderr: str, secrets: Sequence[str]) -> str:
    """The most telling message: the first complaint that is not a mere announcement, else the end of stderr."""
    for complaint in complaints:
        if not _ANNOUNCEMENT.fullmatch(complaint.message.strip()):
            return _short(complaint.message, secrets)
    if complaints:
        return _short(complaints[0].message, secrets)
    return _short(mask(stderr, secrets)[-LONGEST:], secrets)  # masked before the cut: half a secret is not recognized


def _short(message: str, secrets: Sequence[str]) -> str:
    """One line without secrets and noise, cut to :data:`LONGEST` characters."""
    line = " ".join(_NOISE.sub("", " ".join(mask(message, secrets).split())).split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
