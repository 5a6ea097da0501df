"""Turns the output of a failed command into one error of `errors`.

The engine reports errors as text only. The patterns match the texts of the pinned versions (engine 3.259, provider
4.25); tests/integration/engine/test_failures.py checks them against the real ones.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from reside.common.masking import mask
from reside.sentinel.engine.errors import (
    ApplyBlocked,
    ApplyConflict,
    ApplyRejected,
    DeletionPending,
    EngineBroken,
    EngineError,
    EngineKilled,
    EngineUnavailable,
    ProviderEnded,
    StackLocked,
)
from reside.sentinel.engine.events import Complaint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LONGEST: Final = 400
"""Messages are cut to this number of characters, because they are shown in lists and stored in Jazz."""

_CONFLICT = re.compile(
    r"Apply failed with \d+ conflicts?: (?P<fields>conflicts? with \"(?P<manager>[^\"]+)\".*)", re.DOTALL
)
_UNREACHABLE = re.compile(
    r"cluster is unreachable|unreachable cluster|connection refused|connection reset|i/o timeout|no such host"
    r"|TLS handshake timeout"
    r"|no route to host|unable to load schema information|the server is currently unable|etcdserver:|context deadline"
    r"|Too many requests|unexpected EOF|ServiceUnavailable|network is unreachable"
    r"|code = Unavailable|unable to return a response in the time allotted|request did not complete within"
    r"|apiserver is shutting down|not yet ready to handle request|storage is \(re\)initializing",
    re.IGNORECASE,
)
_NO_ANSWER = re.compile(r'(?<!webhook: )\b(?:Get|Head|Post|Put|Patch|Delete) "https?://[^"]*": (?!context canceled)')
"""How the client of the provider begins the text of a request that has no answer; the cause that follows may be any,
such as "EOF" after the death of the API server. An answer of the API server never begins so, and quotes such a text
only of its own request to a webhook. A request that the engine cancelled tells nothing about the API server."""
_OUTSIDE = re.compile(
    r"exceeded quota|failed calling webhook|is forbidden: User|is being terminated|object is being deleted"
    r"|object has been modified|uid mismatch|metadata\.uid: Invalid value"
)
"""Words of the API server if the reason of a refusal is not in the object. The last three: another program changed the
object at the same moment, or was faster, so a precondition has failed (see `adoption`)."""
_PROVIDER_ENDED = re.compile(
    r"the provider \S+ \(process \d+\) ended|\bexited prematurely\b"
    r"|^(?:rpc error: code = Unavailable desc = )?(?:error reading from server|transport is closing)",
    re.MULTILINE,
)
"""Words of both engines if the process of a provider ended, perhaps because of another stack. The API server uses the
last ones, too, if its etcd ends; then they don't begin the message."""
_INTERRUPTED = re.compile(r"\bcontext canceled\b")
"""Error text of a request that the engine cancelled during its shutdown."""
_STILL_THERE = "timed out waiting for the condition"
"""Words of the provider if a deleted object still exists at the end of the wait. It waits for nothing else."""
_STORE = re.compile(r"operation error (?:S3|KMS): |(?:secrets|blob) \(code=")
"""Words of the engine if an object store or a service with keys refuses or can't be reached."""
_LOCKED = re.compile(r"the stack is currently locked by")
_PASSPHRASE = re.compile(r"incorrect passphrase|passphrase must be set|failed to decrypt|message authentication failed")
REPLACE_CURE: Final = (
    'declare it under another name, or set the annotation reside.io/replace: "true" to have it deleted and recreated'
)
"""What to do if Kubernetes does not allow a change of an object."""
_IMMUTABLE = re.compile(
    r"immutable|Forbidden: updates to|cannot change roleRef|may not change once set|can not be unset", re.IGNORECASE
)
"""How the API server refuses such a change."""
_CREDENTIAL = re.compile(r"SECRET|TOKEN|PASSWORD|PASSPHRASE|CREDENTIALS?$|ACCESS_KEY|STORAGE_KEY|CONNECTION_STRING")
"""Names of environment variables with credentials."""
_SHORTEST_SECRET: Final = 8
_ANNOUNCEMENT = re.compile(r"(update|preview|destroy) failed|.*returned an unhandled exception.*")
_NOISE = re.compile(
    r"\d+ errors? occurred:"
    r'|\* the Kubernetes API server reported that "[^"]*" failed to fully initialize or become live:'
    r'|resource "[^"]*" was not successfully (created|updated) by the Kubernetes API server:|^error: '
)
"""Text of the provider around the message of the API server."""
_PASSING: Final = {
    _STORE: "the store of the states, or the key that encrypts them, cannot be used",
    _UNREACHABLE: "the Kubernetes API cannot be reached",
    _NO_ANSWER: "the Kubernetes API did not answer",
}
"""What passes without a change of the stack, by the words that tell it."""


def diagnose(code: int, complaints: Sequence[Complaint], stderr: str, secrets: Sequence[str]) -> EngineError:
    """Return the error that describes a failed command.

    Args:
        code: the exit code; negative is the signal that killed the engine.
        complaints: the errors in the event log.
        stderr: what the command wrote to standard error.
        secrets: values that the message must not contain.
    """
    secrets = sorted({*secrets, *credentials(os.environ)}, key=len, reverse=True)  # as `mask` needs them
    if code < 0:
        return EngineKilled(f"signal {-code} ended the engine; the next operation repairs the stack")
    refusals = [complaint for complaint in complaints if not _INTERRUPTED.search(complaint.message)]
    return (
        _stack_error(complaints, stderr, secrets)
        or _object_error(refusals, secrets)
        or _interruption(complaints, stderr, secrets)
        or EngineBroken(f"the engine failed with code {code}: {_best(complaints, stderr, secrets)}")
    )


def credentials(environment: Mapping[str, str]) -> list[str]:
    """Return the values of environment variables that may be credentials, for example of an object store."""
    return [value for name, value in environment.items() if len(value) >= _SHORTEST_SECRET and _CREDENTIAL.search(name)]


def _stack_error(complaints: Sequence[Complaint], stderr: str, secrets: Sequence[str]) -> EngineError | None:
    """Return the error of the whole stack; None if a single object may have caused it."""
    everything = "\n".join([*(complaint.message for complaint in complaints), stderr])
    if _LOCKED.search(everything):
        return StackLocked("the stack is locked by another engine that is running now")
    if _PASSPHRASE.search(everything):
        return EngineBroken("the state cannot be decrypted: start the Sentinel with the passphrase that encrypted it")
    ends = [each for each in (*complaints, Complaint(None, stderr)) if _PROVIDER_ENDED.search(each.message)]
    if ends:
        first = next((each for each in ends if each.object), ends[0])
        what = "the provider ended, and the next attempt starts it"
        return ProviderEnded(f"{what}: {_short(first.message, secrets)}", first.object)
    for words, what in _PASSING.items():
        if words.search(everything):
            return EngineUnavailable(f"{what}: {_best(complaints, stderr, secrets)}")
    return None


def _interruption(complaints: Sequence[Complaint], stderr: str, secrets: Sequence[str]) -> EngineError | None:
    """Return the error of an operation that was interrupted before the API server had refused anything."""
    if any(_INTERRUPTED.search(complaint.message) for complaint in complaints):
        return EngineUnavailable(f"the operation was interrupted: {_best(complaints, stderr, secrets)}")
    return None


def _object_error(complaints: Sequence[Complaint], secrets: Sequence[str]) -> EngineError | None:
    """Return the error of one object; a conflict is preferred, because it names the other manager."""
    for complaint in complaints:
        conflict = _CONFLICT.search(complaint.message)
        if conflict:
            return _conflict(conflict, complaint, secrets)
    about = [complaint for complaint in complaints if complaint.object]
    for complaint in about:
        if _STILL_THERE not in complaint.message:
            kind = ApplyBlocked if _OUTSIDE.search(complaint.message) else ApplyRejected
            forbidden = kind is ApplyRejected and _IMMUTABLE.search(complaint.message)
            cure = f"; {REPLACE_CURE}" if forbidden else ""
            return kind(_short(complaint.message, secrets) + cure, complaint.object)
    return DeletionPending(frozenset(str(complaint.object) for complaint in about)) if about else None


def _conflict(found: re.Match[str], complaint: Complaint, secrets: Sequence[str]) -> ApplyConflict:
    manager = found["manager"]
    fields = _short(found["fields"], secrets)
    return ApplyConflict(f"{manager} manages fields that the stack sets: {fields}", complaint.object, manager)


def _best(complaints: Sequence[Complaint], stderr: str, secrets: Sequence[str]) -> str:
    """Return the first complaint that does more than announce the failure, or else the end of stderr."""
    for complaint in complaints:
        if not _ANNOUNCEMENT.fullmatch(complaint.message.strip()):
            return _short(complaint.message, secrets)
    if complaints:
        return _short(complaints[0].message, secrets)
    # Mask before the text is cut: a part of a secret would not be found.
    return _short(mask(stderr, secrets)[-LONGEST:], secrets)


def _short(message: str, secrets: Sequence[str]) -> str:
    """Return one line without secrets and noise, cut to `LONGEST` characters."""
    line = " ".join(_NOISE.sub("", " ".join(mask(message, secrets).split())).split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
