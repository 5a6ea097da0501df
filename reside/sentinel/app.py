"""The Sentinel replica: guards live objects from its start on, and applies desired stacks while it leads.

    guard running ────────────────────────────────────────────────────────  needs the Kubernetes API and the volume
        started (login, permissions, probes) ─────────────────────────────  needs Jazz
            leading: one term after another ──────────────────────────────  needs etcd

While Jazz or etcd is unavailable, the inner parts retry. The guard continues to run, and restores Jazz and etcd
themselves.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from reside.common.backoff import Retries
from reside.common.transience import is_transient
from reside.jazz import JazzError
from reside.locks import LockError, LockTimeout
from reside.locks.service import DEFAULT_TTL_S, LEADER_PREFIX
from reside.model.constants import SENTINEL_CONTRACT, SENTINEL_NAME
from reside.replica import Replica
from reside.sentinel.backoff import CONNECT_BACKOFF
from reside.sentinel.contract import access
from reside.sentinel.contract.data import make_data
from reside.sentinel.contract.manifest import CONTRACT
from reside.sentinel.engine import EngineError, EngineSettings, PulumiEngine
from reside.sentinel.guard.guard import run_guard
from reside.sentinel.term.context import LaneCounts
from reside.sentinel.term.term import begin

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.locks import Held
    from reside.model.permissions import Grant, PermissionRef
    from reside.replica import Context
    from reside.sentinel.engine import StackEngine
    from reside.sentinel.guard.guard import Guard
    from reside.sentinel.settings import SentinelSettings
    from reside.sentinel.term.term import Term

_log = structlog.get_logger(__name__)

LEADER_KEY: Final = f"{LEADER_PREFIX}{SENTINEL_NAME}"
_LEASE_WAIT_S: Final = 5.0
"""Seconds to wait for the lease. Then the authority of a process without a lease is set, and the wait continues."""
_FLUSH_S: Final = 5.0
"""Deadline in seconds for the last reports to reach the sync server."""
_SETTLE_S: Final = 1.0
"""Delay in seconds before stacks are examined after a change of grants; by then, the change has taken effect."""


def pulumi_engine(settings: SentinelSettings) -> StackEngine:
    """Return the engine for these settings."""
    return PulumiEngine(
        EngineSettings(
            folder=settings.engine_dir,
            passphrase=settings.engine_passphrase.get_secret_value(),
            namespace=settings.namespace,
            kubeconfig=settings.kubeconfig,
            context=settings.kube_context,
            engine=settings.engine,
            parallel=settings.lanes + settings.preview_lanes,
            deadline=settings.operation_deadline_s,
            backend=settings.store,
            secrets_provider=settings.secrets_provider,
        )
    )


class Sentinel:
    """A Sentinel: a process of its own, or a thread of the seed.

    Args:
        settings: its configuration.
        make_engine: returns a new engine for each term.
    """

    def __init__(
        self,
        settings: SentinelSettings,
        make_engine: Callable[[SentinelSettings], StackEngine] = pulumi_engine,
    ) -> None:
        self._settings = settings
        self._make_engine = make_engine
        self._stop = asyncio.Event()
        self._term: Term | None = None
        self.replica = Replica(CONTRACT)
        self.replica.data(SENTINEL_CONTRACT)(make_data)
        for name in access.HANDLED:
            self.replica.permission(
                SENTINEL_CONTRACT, name, granted=self._changed, revoked=self._changed, updated=self._changed
            )

    def stop(self) -> None:
        """End `run` gracefully: finish running operations, write reports, release the lease."""
        self._stop.set()

    async def run(self, *, serve: bool = True) -> None:
        """Run until stopped. Cancelling is safe, too: the next Sentinel finishes what was interrupted.

        Args:
            serve: whether to listen on HTTP for probes and metrics.

        Raises:
            InvalidInput: the settings are wrong: the Kubernetes API is not configured, or the passphrase is not the
                vault's.
        """
        try:
            async with run_guard(self._settings.guard) as guard:
                await self._until_stopped(guard, serve=serve)
        except BaseExceptionGroup as failed:
            if len(failed.exceptions) == 1:
                raise failed.exceptions[0] from None
            raise

    async def _until_stopped(self, guard: Guard, *, serve: bool) -> None:
        """Serve until stopped; let a running term finish, but cancel a login or a wait for the lease."""
        serving = asyncio.create_task(self._serve(guard, serve=serve), name="sentinel")
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if self._term is None:
                serving.cancel()
            await asyncio.wait({serving})
        finally:
            stopping.cancel()
            serving.cancel()
            await asyncio.wait({serving})
        if not serving.cancelled():
            serving.result()

    async def _serve(self, guard: Guard, *, serve: bool) -> None:
        """Log in and lead; retry while Jazz is unavailable."""
        retries = Retries(CONNECT_BACKOFF)
        while not self._stop.is_set():
            try:
                async with self.replica.start(self._settings, serve=serve) as context:
                    context.health.checks["watching Kubernetes"] = guard.cache.ready.is_set
                    retries.succeeded()
                    await self._lead(context, guard)
            except Exception as error:
                # The guard must survive every error of Jazz.
                if not (is_transient(error) or isinstance(error, JazzError)):
                    raise
                pause = retries.failed()
                _log.warning("not started; retrying", seconds=pause, error=str(error))
                guard.authority.lose_etcd()
                await self._wait(pause)

    async def _lead(self, context: Context, guard: Guard) -> None:
        """Lead whenever the lease is free, until stopped."""
        retries, held_since = Retries(CONNECT_BACKOFF), None
        loop = asyncio.get_running_loop()
        while not self._stop.is_set():
            try:
                await self._wait_for_term(context, guard)
                retries.succeeded()
                held_since = None
            except LockTimeout:
                held_since = held_since or loop.time()
                if loop.time() - held_since < DEFAULT_TTL_S:
                    # The holder may have crashed, or be this process before an outage, so keep the authority.
                    await guard.reload()
                else:
                    guard.authority.follow()
            except LockError as error:
                pause, held_since = retries.failed(), None
                _log.warning("not leading; retrying", seconds=pause, error=str(error))
                guard.authority.lose_etcd()
                await self._wait(pause)

    async def _wait_for_term(self, context: Context, guard: Guard) -> None:
        """Lead for one term, if the lease becomes free within a few seconds."""
        async with context.locks.lock(LEADER_KEY, wait=_LEASE_WAIT_S) as lease:
            engine = self._make_engine(self._settings)
            starting = asyncio.create_task(_start(engine)) if not guard.store.stacks else None
            try:
                await self._work(context, guard, engine, lease)
            finally:
                await engine.stop()
                if starting is not None:
                    await starting

    async def _work(self, context: Context, guard: Guard, engine: StackEngine, lease: Held) -> None:
        lanes = LaneCounts(self._settings.lanes, self._settings.preview_lanes)
        term = await begin(context, guard, engine, lease, policy=self._settings.rules, lanes=lanes)
        guard.authority.lead()
        self._term = term
        try:
            async with term.running():
                await self._stop.wait()
                context.health.draining = True
                await term.finish()
                await context.node.flush(timeout=_FLUSH_S)
        finally:
            self._term = None

    async def _changed(self, context: Context, ref: PermissionRef, grant: Grant) -> None:
        await access.changed(context, ref, grant)
        if self._term is not None:
            self._term.examine(ref.account, after=_SETTLE_S)

    async def _wait(self, seconds: float) -> None:
        """Wait for `seconds`, or until stopped."""
        try:
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        except TimeoutError:
            return


async def _start(engine: StackEngine) -> None:
    """Start an engine while the data is loaded, because with an empty volume every stack must be applied.

    If that fails, so does the first operation, which is repeated and reported.
    """
    try:
        await engine.start()
    except (EngineError, OSError) as error:
        _log.info("the engine can't be started before it is needed", error=str(error))
