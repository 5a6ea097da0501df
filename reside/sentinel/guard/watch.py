"""Keep the object cache current: list and watch each kind, and list it again when the watch ends.

The end of a watch is an error and is logged, with two exceptions: the API server asks for a new list (410 Gone), or no
event arrived for `QUIET_S`, after which a new list detects a connection that was lost silently. Each kind has a task of
its own.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

import structlog
from prometheus_client import Counter, Gauge

from reside.common.backoff import Retries
from reside.model.errors import ResideError
from reside.sentinel.backoff import CONNECT_BACKOFF

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reside.model.kinds import Kind
    from reside.model.stacks import K8sObject
    from reside.sentinel.guard.api import KubernetesApi

_log = structlog.get_logger(__name__)

QUIET_S: Final = 300.0
"""Seconds without an event after which a kind is listed again, in case the connection was lost silently."""
WATCH_FAILURES = Counter("reside_sentinel_watch_failures_total", "Watches that ended by an error.", ["kind"])
LAST_EVENT = Gauge("reside_sentinel_watch_last_event_seconds", "Unix time of a watch's last event or list.", ["kind"])


class Cache(Protocol):
    """What a watch keeps current."""

    def replace(self, kind: Kind, objects: Iterable[K8sObject]) -> None:
        """Replace all objects of a kind."""

    def note(self, event: str, live: K8sObject) -> None:
        """Update the cache from one event."""


async def follow(api: KubernetesApi, cache: Cache, kind: Kind) -> None:
    """Keep the cache's objects of one kind current until cancelled.

    Raises:
        ClusterRefused: the API server rejects our credentials (401): only a restart reads new ones.
    """
    retries = Retries(CONNECT_BACKOFF)
    while True:
        began = asyncio.get_running_loop().time()
        try:
            objects, version = await api.list_all(kind)
            cache.replace(kind, objects)
            LAST_EVENT.labels(kind.kind).set_to_current_time()
            await _events(api, cache, kind, version)
            retries.succeeded()
        except ResideError as error:  # every error of the Kubernetes API
            status = getattr(error, "status", 0)
            if status == HTTPStatus.UNAUTHORIZED:
                raise
            if asyncio.get_running_loop().time() - began > CONNECT_BACKOFF.longest:
                retries.succeeded()  # the watch worked for a while before it failed
            pause = retries.failed()
            if status != HTTPStatus.GONE:
                WATCH_FAILURES.labels(kind.kind).inc()
                _log.warning("watch failed; retrying", kind=kind.kind, seconds=pause, error=str(error))
            await asyncio.sleep(pause)


async def _events(api: KubernetesApi, cache: Cache, kind: Kind, version: str) -> None:
    """Update the cache from events until the watch ends or is quiet for `QUIET_S`."""
    async with aclosing(api.watch(kind, version)) as events:
        while True:
            try:
                async with asyncio.timeout(QUIET_S):
                    event, live = await anext(events)
            except (TimeoutError, StopAsyncIteration):
                return
            LAST_EVENT.labels(kind.kind).set_to_current_time()
            cache.note(event, live)
