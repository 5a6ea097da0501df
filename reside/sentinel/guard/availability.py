"""Notice the end of an outage of the Kubernetes API, so that what failed by it does not wait for its next attempt.

The pauses between attempts grow up to a minute, because an apply costs a second of engine time. While the API server is
away, one small request tries it more often in place of all of them. The request reads from etcd, so that its loss is an
outage, too.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from reside.common.backoff import Retries
from reside.model.constants import TEARDOWN_MARKER
from reside.model.errors import ResideError
from reside.sentinel.backoff import CONNECT_BACKOFF

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.sentinel.guard.api import KubernetesApi

_log = structlog.get_logger(__name__)


class Availability:
    """Whether the Kubernetes API serves requests, as far as anybody doubts it.

    Args:
        api: the Kubernetes API.
    """

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._doubted = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []

    def doubt(self) -> None:
        """Note that something failed, perhaps because the API server is away."""
        self._doubted.set()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` at the end of each outage; return a function that unsubscribes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def run(self) -> None:
        """Look at each doubt until cancelled."""
        while True:
            await self._doubted.wait()
            self._doubted.clear()
            if await self._was_away():
                _log.info("the Kubernetes API has returned")
                for listener in list(self._listeners):
                    listener()

    async def _was_away(self) -> bool:
        """Wait until the API server answers; return whether it did not do so at once."""
        retries = Retries(CONNECT_BACKOFF)
        while True:
            try:
                await self._api.get(TEARDOWN_MARKER)
            except ResideError:  # also a refusal: an API server that has just started does not know our role yet
                await asyncio.sleep(retries.failed())
            else:
                return retries.failures > 0
