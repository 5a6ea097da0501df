"""One watch a kind: list, follow, list again when it ends; the result stands in the cache.

An end is always an error and logged, but for the API server's wish to list again (410) and for our own: after a while
without an event we list anew, so that a connection that died silently is noticed. Each kind is guarded by itself.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import structlog
from prometheus_client import Counter, Gauge

from reside.common.backoff import Retries
from reside.model.errors import ResideError
from reside.sentinel.backoff import CONNECT_BACKOFF

if TYPE_CHECKING:
    from reside.model.kinds import Kind
    from reside.sentinel.guard.api import KubernetesApi
    from reside.sentinel.guard.cache import ObjectCache

_log = structlog.get_logger(__name__)

QUIET_S: Final = 300.0
"""Seconds without an event after which a kind is listed again."""
WATCH_FAILURES = Counter("reside_sentinel_watch_failures_total", "Watches that ended by an error.", ["kind"])
LAST_EVENT = Gauge("reside_sentinel_watch_last_event_seconds", "Unix time of a watch's last event or list.", ["kind"])


async def follow(api: KubernetesApi, cache: ObjectCache, kind: Kind) -> None:
    """Keep the cache's objects of a kind as they are, without end.

    Raises:
        ClusterRefused: our credentials are no longer taken (401): only a new start reads new ones.
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
        except ResideError as error:  # whatever the Kubernetes API answers
            status = getattr(error, "status", 0)
            if status == HTTPStatus.UNAUTHORIZED:
                raise
            if asyncio.get_running_loop().time() - began > CONNECT_BACKOFF.longest:
                retries.succeeded()  # the watch had worked for a while
            pause = retries.failed()
            if status != HTTPStatus.GONE:
                WATCH_FAILURES.labels(kind.kind).inc()
                _log.warning("watch ended", kind=kind.kind, seconds=pause, error=str(error))
            await asyncio.sleep(pause)


async def _events(api: KubernetesApi, cache: ObjectCache, kind: Kind, version: str) -> None:
    """Take events until the watch has been quiet for long."""
    async with aclosing(api.watch(kind, version)) as events:
        while True:
            try:
                async with asyncio.timeout(QUIET_S):
                    event, live = await anext(events)
            except (TimeoutError, StopAsyncIteration):
                return
            LAST_EVENT.labels(kind.kind).set_to_current_time()
            cache.note(event, live)
