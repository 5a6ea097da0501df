"""What outlives the seed: the ConfigMap `reside-cluster` says how the bootstrap went, with Events about it.

The members of the ConfigMap's data: `release` (the seed's image, with its digest), `namespace`, `endpoint` (empty
without a domain), `alphaAccount`, `result`, `error`, `cure`, and `phases`, a JSON list of the phases that have begun,
each with its times and result.
`kubectl wait --for=jsonpath='{.data.result}'=succeeded configmap/reside-cluster` waits for the end of a bootstrap.

Invariants: the result is `succeeded` only while every phase is done; of a cluster that is older than its record, every
phase that has run since. The ConfigMap lacks the managed-by label, so the
Sentinel neither adopts nor prunes it. It contains no secrets: of an unexpected error it names the type only.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from reside.model.constants import CLUSTER_RECORD, SEED_NAME
from reside.model.errors import ResideError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reside.seed.settings import BootstrapSettings

NAME: Final = CLUSTER_RECORD
PHASES: Final = ("storage", "accounts", "launch", "load", "handover")
CURE: Final = (
    "correct the cause and run the bootstrap again, it continues where it stopped: with the CLI `reside cluster "
    f"bootstrap`; with the manifest delete the Job `{SEED_NAME}` and apply the manifest"
)
_LONGEST: Final = 2000
"""Characters of an error that are kept."""

PhaseResult = Literal["running", "done", "failed"]


@dataclass(frozen=True)
class Phase:
    """A phase of the bootstrap; times are UTC, as in Kubernetes."""

    name: str
    result: PhaseResult
    started: str
    ended: str | None = None


def timestamp(moment: datetime | None = None) -> str:
    """Return a moment, now by default, in the format of Kubernetes' timestamps."""
    return (moment or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")


def config_map(namespace: str, data: Mapping[str, str]) -> dict[str, Any]:
    """Return the ConfigMap with these data."""
    metadata = {"name": NAME, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}


def pending() -> dict[str, str]:
    """Return the data before the seed has started; a second `kubectl apply` of them keeps what the seed has written."""
    return {"result": "pending"}


def first(settings: BootstrapSettings) -> dict[str, str]:
    """Return the data at the start of a bootstrap on a new namespace."""
    endpoint = f"https://{settings.domain}" if settings.domain else ""
    return {
        "result": "running",
        "error": "",
        "cure": "",
        "phases": "[]",
        "release": settings.images.seed,
        "namespace": settings.namespace,
        "endpoint": endpoint,
    }


def began(data: Mapping[str, str], phase: str, now: str) -> dict[str, str]:
    """Return the data after the start of a phase; one that was interrupted keeps the time of its first start."""
    found = _phase(data, phase, now)
    entry = found if found.ended is None else Phase(phase, "running", now)
    return _with(data, entry, result="running", error="", cure="")


def succeeded(data: Mapping[str, str], phase: str, now: str) -> dict[str, str]:
    """Return the data after the end of a phase; the last one ends the bootstrap."""
    changed = _with(data, replace(_phase(data, phase, now), result="done", ended=now))
    results = {each.name: each.result for each in phases(changed)}
    complete = PHASES[0] not in results or set(results) == set(PHASES)
    return changed | {"result": "succeeded" if complete and set(results.values()) == {"done"} else "running"}


def failed(data: Mapping[str, str], phase: str | None, error: str, now: str) -> dict[str, str]:
    """Return the data after an error, in a phase or outside of all phases."""
    text = error if len(error) <= _LONGEST else error[: _LONGEST - 1] + "…"
    ended = {"result": "failed", "error": text, "cure": CURE}
    if phase is None:
        return {**data, **ended}
    return _with(data, replace(_phase(data, phase, now), result="failed", ended=now), **ended)


def confirmed(data: Mapping[str, str]) -> dict[str, str]:
    """Return the data after a bootstrap that had nothing to do: an error outside of the phases is over."""
    if data.get("result") != "failed" or {each.result for each in phases(data)} != {"done"}:
        return dict(data)
    return {**data, "result": "succeeded", "error": "", "cure": ""}


def has_ended_since(data: Mapping[str, str], moment: str) -> bool:
    """Return whether a bootstrap that began at this moment has recorded its error or success."""
    times = [time for each in phases(data) for time in (each.started, each.ended) if time]
    return data.get("result") in ("failed", "succeeded") and any(time >= moment for time in times)


def error_text(error: BaseException) -> str:
    """Return the text of an error that may be published: messages of ReSide's errors contain no secrets."""
    if isinstance(error, ResideError):
        return str(error)
    return f"unexpected {type(error).__name__}: see `kubectl logs job/{SEED_NAME}`"


def phases(data: Mapping[str, str]) -> list[Phase]:
    """Return the phases in the data; none if somebody else has made them unreadable."""
    try:
        found = [Phase(**each) for each in json.loads(data.get("phases", "[]"))]
    except (TypeError, ValueError):
        return []
    return sorted((each for each in found if each.name in PHASES), key=lambda each: PHASES.index(each.name))


def _phase(data: Mapping[str, str], name: str, now: str) -> Phase:
    return next((each for each in phases(data) if each.name == name), Phase(name, "running", now))


def _with(data: Mapping[str, str], phase: Phase, **members: str) -> dict[str, str]:
    found = {each.name: each for each in phases(data)} | {phase.name: phase}
    listed: list[dict[str, Any]] = [asdict(found[name]) for name in PHASES if name in found]
    return {**data, "phases": json.dumps(listed), **members}
