"""Record the course of the bootstrap in the ConfigMap `reside-cluster` and in Events about it (`outcome`).

Invariant: an error of a step reaches the caller unchanged, also if recording it fails.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import structlog
from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import ConfigMap, Event
from lightkube.types import PatchType

from reside.access.client import connect, is_missing
from reside.model.constants import SEED_NAME
from reside.model.errors import ResideError
from reside.seed import outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import lightkube

    from reside.access.target import Target
    from reside.seed.settings import BootstrapSettings

_log = structlog.get_logger()


@contextmanager
def recorded(settings: BootstrapSettings, phase: str) -> Iterator[None]:
    """Record the start of a phase, and its end or error.

    Raises:
        ResideError: the Kubernetes API refused a record, or can't be reached.
    """
    with begun(settings, phase):
        yield
        end(settings, phase)


@contextmanager
def begun(settings: BootstrapSettings, phase: str) -> Iterator[None]:
    """Record the start of a phase, and an error in it; the caller records its end with `end`.

    Raises:
        ResideError: see `recorded`.
    """
    begin(settings, phase)
    try:
        yield
    except Exception as error:
        record_failure(settings.target, phase, outcome.error_text(error))
        raise


def end(settings: BootstrapSettings, phase: str) -> None:
    """Record the end of a phase."""
    _run(
        settings.target,
        lambda data: outcome.succeeded(data, phase, outcome.timestamp()),
        "PhaseDone",
        f"phase {phase} is done",
    )


def begin(settings: BootstrapSettings, phase: str, *, is_first: bool = False) -> None:
    """Record the start of a phase; the first one of a bootstrap removes the phases of an earlier bootstrap."""
    start = outcome.first(settings)

    def change(data: dict[str, str]) -> dict[str, str]:
        if is_first:
            before = {**data, **start}
        else:
            before = {**start, **data, "release": start["release"], "endpoint": start["endpoint"]}
        return outcome.began(before, phase, outcome.timestamp())

    _run(settings.target, change, "PhaseStarted", f"phase {phase} has started")


def record_account(settings: BootstrapSettings, account: str) -> None:
    """Record the id of Alpha's account."""
    _run(settings.target, lambda data: {**data, "alphaAccount": account})


def record_failure(target: Target, phase: str | None, error: str, *, since: str | None = None) -> None:
    """Record an error, or log it if that is not possible.

    Args:
        target: the cluster.
        phase: the phase; None: it is outside of all phases.
        error: the error.
        since: the start of the bootstrap; an error or success that one of its phases has recorded is kept.
    """

    def change(data: dict[str, str]) -> dict[str, str]:
        if since is not None and outcome.has_ended_since(data, since):
            return data
        return outcome.failed(data, phase, error, outcome.timestamp())

    try:
        _run(target, change, "BootstrapFailed", error, warning=True)
    except ResideError as refused:
        _log.warning("the error can't be recorded", configmap=outcome.NAME, error=error, reason=str(refused))


def confirm(target: Target) -> None:
    """Record that nothing was left to do, if all phases are done and an error outside of them is recorded."""
    _run(target, outcome.confirmed)


def _run(
    target: Target,
    change: Callable[[dict[str, str]], dict[str, str]],
    reason: str | None = None,
    message: str = "",
    *,
    warning: bool = False,
) -> None:
    asyncio.run(_record(target, change, reason, message, warning=warning))


async def _record(
    target: Target,
    change: Callable[[dict[str, str]], dict[str, str]],
    reason: str | None,
    message: str,
    *,
    warning: bool,
) -> None:
    async with connect(target) as client:
        stored = await _write(client, change)
        if stored is None or reason is None:
            return
        await _tell(client, stored, reason, message, warning=warning)
        if reason == "PhaseDone" and (stored.data or {}).get("result") == "succeeded":
            await _tell(client, stored, "BootstrapSucceeded", "the cluster is complete", warning=False)


async def _read(client: lightkube.AsyncClient) -> ConfigMap | None:
    try:
        return await client.get(ConfigMap, outcome.NAME)
    except ApiError as error:
        if is_missing(error):
            return None
        raise


async def _write(client: lightkube.AsyncClient, change: Callable[[dict[str, str]], dict[str, str]]) -> ConfigMap | None:
    """Change the data, and return the ConfigMap; None if the change changes nothing."""
    found = await _read(client)
    before = (found.data if found is not None else None) or {}
    data = change(dict(before))
    if data == before:
        return None
    if found is not None:
        return await client.patch(ConfigMap, outcome.NAME, {"data": data}, patch_type=PatchType.MERGE)
    body: Any = ConfigMap.from_dict(outcome.config_map(str(client.namespace), data))
    created: ConfigMap = await client.create(body)
    return created


async def _tell(client: lightkube.AsyncClient, about: ConfigMap, reason: str, message: str, *, warning: bool) -> None:
    """Create an event; who may not create events bootstraps without them."""
    now = outcome.timestamp()
    body: Any = Event.from_dict(
        {
            "metadata": {"name": f"{outcome.NAME}.{secrets.token_hex(8)}", "namespace": client.namespace},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": outcome.NAME,
                "namespace": client.namespace,
                "uid": about.metadata.uid if about.metadata else None,
            },
            "reason": reason,
            "message": message[:1000],
            "type": "Warning" if warning else "Normal",
            "source": {"component": SEED_NAME},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
    )
    try:
        await client.create(body)
    except ApiError as error:
        if error.status.code != HTTPStatus.FORBIDDEN:
            raise
        _log.warning("events can't be created", reason=str(error.status.message))
