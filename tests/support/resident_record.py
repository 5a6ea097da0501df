"""Normalize the results of two runners for a comparison: replace times, ids, ports and random suffixes by names.

Everything else must be equal. This is the complete list of differences that are allowed:

* times, durations, uids, resource versions, random suffixes of names and field managers, provider ids;
* the folders and the namespace of a runner, and the ports of its servers;
* the order in which independent resources finish, and output that depends on the time: progress rows
  ("@ updating....", repeated rows), and dots, which the stock runner may print within a row;
* the number of steps that were complete when one failed, since several run in parallel;
* ephemeral messages ("Resource scheduled for deletion"), which a fast provider does not send;
* the source line and the process that reported a broken snapshot;
* debug messages: they name started plugins, and the resident engine starts fewer.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pulumi.automation.events import EngineEvent

_TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (_TIMES, "TIME"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"pulumi-kubernetes-[0-9a-f]{8}\b"), "pulumi-kubernetes-RANDOM"),
    (re.compile(r"(?<=[a-z0-9])-[0-9a-f]{7,8}\b"), "-RANDOM"),
    (re.compile(r"\((\d+m)?\d+(\.\d+)?m?s\)"), "(TIME)"),
    (re.compile(r"^Duration: .*$", re.MULTILINE), "Duration: TIME"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(r"^(Command|Env Vars): .*\n|Stack Trace:[\s\S]*", re.MULTILINE), ""),
    (re.compile(r"\b\d{19}\b"), "NANOSECONDS"),
    (re.compile(r"\bpid \d+\b"), "pid PID"),
    (re.compile(r"""(resourceVersion"?\s*: )("\d+"( => "\d+")?)"""), r"\1VERSION"),
)
_BY_THE_CLOCK = re.compile(r"@ [a-z ]+\.{3,}|^\.+")
_VARYING = frozenset({"startTime", "endTime", "start_time", "end_time", "resourceVersion", "timestamp", "sequence"})
_VARYING |= {"secure", "time", "created", "modified", "duration_seconds", "salt", "ciphertext", "stream_id", "magic"}
_SECTIONS = ("Diagnostics:", "Outputs:", "Resources:", "Policies:", "Duration:", "error:")


def plain(value: Any, names: Mapping[str, str]) -> Any:
    """Return `value` as JSON data with allowed differences replaced; `names` maps a runner's names to common ones."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return text(value, names)
    if isinstance(value, dict):
        return {
            text(str(plain(key, names)), names): "VARIES" if key in _VARYING and entry else plain(entry, names)
            for key, entry in value.items()
        }
    if isinstance(value, list | tuple):
        return [plain(entry, names) for entry in value]
    if hasattr(value, "__dict__"):
        return plain(vars(value), names)
    return value


def text(value: str, names: Mapping[str, str]) -> str:
    """Return `value` with allowed differences replaced."""
    return _text(value, tuple(names.items()))


@lru_cache(maxsize=4096)  # two runners produce mostly the same keys and texts
def _text(value: str, names: tuple[tuple[str, str], ...]) -> str:
    for own, common in names:
        value = value.replace(own, common)
    for pattern, replacement in _PATTERNS:
        value = pattern.sub(replacement, value)
    return value


def display(value: str, names: Mapping[str, str], chatter: Iterable[str] = ()) -> list[str]:
    """Return the lines of a display: first the distinct progress rows, sorted, then the other lines in their order.

    Rows that end with a text of `chatter`, the result of `ephemeral`, are omitted.
    """
    passing = tuple(text(line, names) for line in chatter)
    lines = [_BY_THE_CLOCK.sub("", line).rstrip() for line in text(value, names).splitlines()]
    lines = [line for line in lines if line and not line.endswith(passing)]
    end = next((n for n, line in enumerate(lines) if line.startswith(_SECTIONS)), len(lines))
    return [*sorted({line.rstrip(".") for line in lines[:end]}), *_diagnostics(lines[end:])]


def _diagnostics(lines: list[str]) -> list[str]:
    """Return the lines with diagnostics sorted by resource; they are printed in the order of their first messages."""
    blocks: list[list[str]] = []
    for line in lines:
        if blocks and line.startswith("    ") and blocks[-1][0].startswith("  "):
            blocks[-1].append(line)
        else:
            blocks.append([line])
    found = [block for block in blocks if block[0].startswith("  ") and block[0].endswith("):")]
    ordered = iter(sorted(found))
    return [line for block in blocks for line in (next(ordered) if block in found else block)]


def ephemeral(received: Iterable[EngineEvent]) -> set[str]:
    """Return the texts of ephemeral messages, which providers report during an operation."""
    diagnostics = [event.diagnostic_event for event in received if event.diagnostic_event is not None]
    return {diagnostic.message.strip() for diagnostic in diagnostics if diagnostic.ephemeral}


def events(received: Iterable[EngineEvent], names: Mapping[str, str]) -> list[Any]:
    """Return the engine events without debug and ephemeral messages, in a stable order by resource."""
    shown = [_event(event, names) for event in received]
    shown = [event for event in shown if event and not _is_chatter(event.get("diagnostic_event", {}))]
    return sorted(shown, key=_subject)


def _is_chatter(diagnostic: dict[str, Any]) -> bool:
    return diagnostic.get("severity") == "debug" or bool(diagnostic.get("ephemeral"))


def _event(event: EngineEvent, names: Mapping[str, str]) -> dict[str, Any]:
    shown = {key: value for key, value in plain(event, names).items() if value not in (None, "VARIES", 0)}
    shown.get("res_op_failed_event", {}).pop("steps", None)
    return shown


def _subject(event: dict[str, Any]) -> tuple[int, str]:
    """Return the sort key of an event: first the prelude, then the resources, then the summary and the end."""
    (kind, body), *_ = event.items()
    place = {"prelude_event": 0, "summary_event": 2, "cancel_event": 3}.get(kind, 1)
    return place, str(body.get("urn") or body.get("metadata", {}).get("urn") or "")


def checkpoint(state: dict[str, Any], names: Mapping[str, str]) -> Any:
    """Return a state file, or another JSON document of the state folder, normalized."""
    shown = plain(state, names)
    latest = (shown.get("checkpoint") or {}).get("latest")
    return {**shown, "checkpoint": deployment(latest, {})} if latest else shown


def deployment(state: dict[str, Any], names: Mapping[str, str]) -> Any:
    """Return a deployment, normalized and sorted by URN and id, since its resources are in the order of completion."""
    shown = plain(state, names)
    resources = shown.get("resources") or []
    resources.sort(key=lambda resource: (resource["urn"], resource.get("delete", False), resource.get("id", "")))
    return shown


def decrypted(state: dict[str, Any], passphrase: str) -> list[str]:
    """Return the plain texts of all secrets of an exported deployment, sorted.

    The format is that of sdk/go/common/resource/config/crypt.go: AES-256-GCM with a key that PBKDF2 derives from the
    passphrase and the salt in the deployment.
    """
    salt = base64.b64decode(state["secrets_providers"]["state"]["salt"].split(":")[1])
    key = hashlib.pbkdf2_hmac("sha256", passphrase.encode(), salt, 1_000_000, 32)
    found = []
    for secret in _ciphertexts(state):
        _, nonce, sealed = secret.split(":")
        found.append(AESGCM(key).decrypt(base64.b64decode(nonce), base64.b64decode(sealed), None).decode())
    return sorted(found)


def _ciphertexts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("ciphertext"), str):
            yield value["ciphertext"]
        for entry in value.values():
            yield from _ciphertexts(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _ciphertexts(entry)


def document(value: Any) -> list[str]:
    """Return `value` as lines of JSON, for a readable comparison."""
    return json.dumps(value, indent=1, sort_keys=True, default=str).splitlines()
