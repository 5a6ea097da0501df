"""Keep the object cache current: list each kind once, watch it, and resume the watch from where it ended.

Bookmarks tell up to which version everything was shown, also of a kind whose objects do not change. So a watch resumes
from a recent version, and a kind is listed again only if the API server asks for it (410 Gone) or does not accept the
version. A connection that was lost silently, on which neither an event nor a bookmark arrived for `QUIET_S`, is
replaced. What ends a watch is an error, and is logged and counted, except 410 Gone. Each kind has a task of its own.

An optional kind that Kubernetes does not serve, or that we may not read, has no objects until that changes.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

import structlog
from prometheus_client import Counter, Gauge

from reside.common.backoff import Retries
from reside.model.errors import ResideError
from reside.sentinel.backoff import CONNECT_BACKOFF
from reside.sentinel.guard.own_writes import version_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reside.model.kinds import Kind
    from reside.model.stacks import K8sObject
    from reside.sentinel.guard.api import KubernetesApi

_log = structlog.get_logger(__name__)

QUIET_S: Final = 90.0
"""Seconds without an event or a bookmark after which a watch is resumed on a new connection. Bookmarks arrive every
minute."""
SLICE_S: Final = 0.005
"""Seconds after which a watch lets other tasks run, even if more events are there."""
LOOK_AGAIN_S: Final = 30.0
"""Seconds between two looks for an optional kind that Kubernetes does not serve, or that we may not read."""
_ABSENT: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN})
_BOOKMARK: Final = "BOOKMARK"
WATCH_FAILURES = Counter(
    "reside_sentinel_watch_failures_total",
    "Watches of Kubernetes that ended by an error, or were silent for 90 s.",
    ["kind"],
)
LAST_EVENT = Gauge(
    "reside_sentinel_watch_last_event_seconds",
    "Unix time of the last event, bookmark or list of a watch; with bookmarks, it is at most a minute old.",
    ["kind"],
)


class Cache(Protocol):
    """What a watch keeps current."""

    async def load(self, kind: Kind, objects: Sequence[K8sObject]) -> None:
        """Replace all objects of a kind."""

    def note(self, event: str, live: K8sObject) -> None:
        """Update the cache from one event."""


@dataclass
class _Position:
    """Up to which resource version a watch has shown everything; None: the kind must be listed."""

    version: str | None = None
    is_resumed: bool = False
    """Whether the watch is resumed after a failure and has shown nothing since."""

    def failed(self, status: int) -> None:
        """Note a failure. The version is tried once more, unless it is the cause or may be: then the kind is listed."""
        if self.is_resumed or status:
            self.version = None
        self.is_resumed = self.version is not None


async def follow(api: KubernetesApi, cache: Cache, kind: Kind) -> None:
    """Keep the cache's objects of one kind current until cancelled.

    Raises:
        ClusterRefused: the API server rejects our credentials (401): only a restart reads new ones.
    """
    retries, position = Retries(CONNECT_BACKOFF), _Position()
    while True:
        began = asyncio.get_running_loop().time()
        try:
            if position.version is None:
                position.version = await _list(api, cache, kind)
            await _events(api, cache, kind, position)
            retries.succeeded()
        except ResideError as error:  # every error of the Kubernetes API
            status = getattr(error, "status", 0)
            if status == HTTPStatus.UNAUTHORIZED:
                raise
            position.failed(status)
            if kind.optional and status in _ABSENT:
                await cache.load(kind, ())
                await asyncio.sleep(LOOK_AGAIN_S)
                continue
            if asyncio.get_running_loop().time() - began > CONNECT_BACKOFF.longest:
                retries.succeeded()  # the watch worked for a while before it failed
            pause = retries.failed()
            if status != HTTPStatus.GONE:
                WATCH_FAILURES.labels(kind.kind).inc()
                _log.warning("watch failed; retrying", kind=kind.kind, seconds=pause, error=str(error))
            await asyncio.sleep(pause)


async def _list(api: KubernetesApi, cache: Cache, kind: Kind) -> str:
    """List all objects; return the version. No variable of `follow` keeps the listed objects while it watches."""
    objects, version = await api.list_all(kind)
    await cache.load(kind, objects)
    LAST_EVENT.labels(kind.kind).set_to_current_time()
    return version


async def _events(api: KubernetesApi, cache: Cache, kind: Kind, position: _Position) -> None:
    """Update the cache from events until the watch ends or is quiet for `QUIET_S`.

    Many events may arrive at once. The next one is then there already, so to wait for it does not let others run.
    """
    loop = asyncio.get_running_loop()
    let_run = loop.time()
    async with aclosing(api.watch(kind, position.version or "")) as events:
        while True:
            try:
                async with asyncio.timeout(QUIET_S):
                    event, live = await anext(events)
            except StopAsyncIteration:
                return
            except TimeoutError:
                WATCH_FAILURES.labels(kind.kind).inc()
                _log.warning("watch was silent; resuming it on a new connection", kind=kind.kind, seconds=QUIET_S)
                return
            LAST_EVENT.labels(kind.kind).set_to_current_time()
            if event != _BOOKMARK:
                cache.note(event, live)
            position.version, position.is_resumed = version_of(live) or position.version, False
            if loop.time() - let_run > SLICE_S:
                await asyncio.sleep(0)
                let_run = loop.time()
