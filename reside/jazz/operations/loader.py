"""Loads: a value is returned once it, its group, the parents of that group and all authors have arrived.

A value that can't be loaded is an error with the reason. Every load has a deadline.
"""

import asyncio
from collections import Counter
from typing import Final

from reside.jazz.errors import JazzTimeout, ValueDeleted, ValueNotFound
from reside.jazz.events.waiters import Waiters
from reside.jazz.ids import CoId, is_co_id
from reside.jazz.memory.covalue import Core
from reside.jazz.memory.readiness import Absent, missing_for
from reside.jazz.memory.store import Store
from reside.jazz.sync import Exchange, Servers

ABSENT_GRACE_S: Final = 2.0
"""How long a load waits for a value that the server does not have, because its writer may still be uploading it."""


class Loader:
    """Loads the values of one node.

    Args:
        store: the values.
        exchange: requests values.
        servers: the connections.
        waiters: notifies of changes.

    Attributes:
        loading: the values that are being loaded, each with the number of loads.
    """

    def __init__(self, store: Store, exchange: Exchange, servers: Servers, waiters: Waiters) -> None:
        self._store = store
        self._exchange = exchange
        self._servers = servers
        self._waiters = waiters
        self.loading: Counter[CoId] = Counter()

    async def load(self, co_id: str, timeout: float, grace: float, *, whole: bool = True) -> Core:  # noqa: ASYNC109 - raises JazzTimeout
        """Load a value completely.

        Args:
            co_id: its id.
            timeout: in seconds.
            grace: how long to wait for a value that the server does not have, in seconds.
            whole: whether to wait for all of its content, and not only for what is needed to validate it.

        Raises:
            ValueNotFound: the server does not have the value, or its owner.
            ValueDeleted: an admin of its group deleted it.
            JazzTimeout: it did not arrive in time.
        """
        if not is_co_id(co_id):
            raise ValueNotFound(co_id, "this is not the id of a value; one looks like co_z…")
        core = self._store.core(co_id)
        missing = missing_for(self._store, core, connected=self._exchange.connected, whole=whole)
        if not missing and not core.unconfirmed:  # nearly always: a deadline would take longer than all else
            return _existing(core)
        self.loading[core.co_id] += 1
        try:
            async with asyncio.timeout(timeout):
                await self._ready(core, grace, whole=whole)
        except TimeoutError:
            why = f"its content was refused: {core.refusal}" if core.refusal else self._servers.delay_reason
            raise JazzTimeout(f"{co_id} could not be loaded within {timeout:g} s: {why}") from None
        finally:
            self._end_load(core)
        return _existing(core)

    async def load_header(self, co_id: str, timeout: float = 30.0) -> None:  # noqa: ASYNC109 - raises JazzTimeout
        """Wait until the header of a value arrived, or the server answered that it does not have it.

        Unlike `load`, this can't be delayed by the author of the value's content.

        Args:
            co_id: the value's id.
            timeout: in seconds.

        Raises:
            JazzTimeout: the server did not answer in time.
        """
        if not is_co_id(co_id):
            return
        core = self._store.core(co_id)
        self.loading[core.co_id] += 1
        try:
            async with asyncio.timeout(timeout):
                core.absent = False  # the server may have received the value since it was last asked
                self._exchange.request(core, again=True)
                while core.header is None and not core.absent:
                    self._exchange.request(core)
                    await self._waiters.change([core], None)
        except TimeoutError:
            raise JazzTimeout(f"{co_id} was not answered within {timeout:g} s: {self._servers.delay_reason}") from None
        finally:
            self._end_load(core)
            self._forget(core)

    async def catch_up(self, small: Core, timeout: float) -> None:  # noqa: ASYNC109 - raises JazzTimeout
        """Wait for one round trip, across reconnects; see `Node.catch_up`.

        Args:
            small: a small value to request.
            timeout: in seconds.

        Raises:
            JazzTimeout: the server did not answer in time.
        """
        try:
            async with asyncio.timeout(timeout):
                answered = False
                while not answered:
                    await self._servers.until_connected()
                    answered = await self._servers.round_trip(small)
        except TimeoutError:
            raise JazzTimeout(
                f"not caught up with the server within {timeout:g} s: {self._servers.delay_reason}"
            ) from None

    def has(self, core: Core) -> bool:
        """Return whether a value is complete in memory, so that a load does not wait."""
        return not core.deleted and not missing_for(self._store, core, connected=self._exchange.connected)

    async def _ready(self, core: Core, grace: float, *, whole: bool) -> None:
        """Wait until a value and everything that it needs is complete."""
        requested_again = False
        while True:
            missing = missing_for(self._store, core, connected=self._exchange.connected, whole=whole)
            if not missing:
                if core.unconfirmed:  # a file whose beginning is in the local store: nobody waits for the rest
                    self._exchange.request(core)
                return
            if isinstance(missing, Absent):
                if requested_again and not await self._waiters.change([missing.core], grace):
                    self._forget(missing.core)
                    raise ValueNotFound(core.co_id, missing.why)
                # The server may have received the value since it was last asked.
                if not requested_again:
                    requested_again = True
                    missing.core.absent = False
                    self._exchange.request(missing.core, again=True)
                continue
            for needed in missing:
                self._exchange.request(needed)
                requested_again = requested_again or needed is core
            await self._waiters.change(missing, None)

    def _end_load(self, core: Core) -> None:
        self.loading[core.co_id] -= 1
        if not self.loading[core.co_id]:
            del self.loading[core.co_id]

    def _forget(self, core: Core) -> None:
        """Drop a value that does not exist, so that requests for made-up ids can't fill the memory."""
        if core.header is None and not core.dependants and not core.deferred and not self._waiters.is_awaited(core):
            self._store.cores.pop(core.co_id, None)
            self._exchange.forget(core)


def _existing(core: Core) -> Core:
    if core.deleted:
        raise ValueDeleted(core.co_id)
    return core
