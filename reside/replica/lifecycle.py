"""Start and stop of a replica (docs/model.md, section 7).

    1 settings → 2 log in → 3 control block → 4 peers → 5 permission loop → 6 RPC → 7 the replica's own code

The probes are served from the beginning; until step 6, RPC responds with "not serving". At the stop: no new calls,
calls in progress end, loops are cancelled, the last writes are sent to the sync server, connections are closed.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import httpx2
import stamina
import structlog

from reside.common.tls import trusted_authorities
from reside.common.transience import is_transient
from reside.jazz import (
    AccountId,
    CoId,
    Credentials,
    InvalidCredentials,
    JazzError,
    Node,
    RequestVerifier,
)
from reside.locks import LockService
from reside.replica.app import build_app
from reside.replica.background import in_background
from reside.replica.context import Context
from reside.replica.control_block import ControlBlock
from reside.replica.grants import run_permission_loop
from reside.replica.health import Health
from reside.replica.lock_access import find_user
from reside.replica.migrations import check_migrations, migrate
from reside.replica.profile import load_profile, publish_profile
from reside.replica.rpc import RpcServer
from reside.replica.serving import bind, serving
from reside.replica.start_steps import START_TIMEOUT_S, StartSteps

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator

    from reside.jazz import CoMap
    from reside.replica.declaration import Declaration
    from reside.replica.settings import ReplicaSettings

_log = structlog.get_logger(__name__)

_RETRY_WITHIN_S = START_TIMEOUT_S - 30.0
"""Seconds for which a step is retried. The last error is raised before the step's own deadline ends it without one."""
_PEERS_WITHIN_S = 10.0
_CONNECTIONS = httpx2.Limits(max_connections=64, max_keepalive_connections=16)


@asynccontextmanager
async def started(
    declaration: Declaration,
    settings: ReplicaSettings,
    *,
    serve: bool = True,
    etcd: httpx2.AsyncBaseTransport | None = None,
) -> AsyncIterator[Context]:
    """See `Replica.start`."""
    check_migrations(declaration)
    health, steps = Health(), StartSteps(settings.replica_name)
    rpc = RpcServer(settings.replica_name, declaration)
    async with AsyncExitStack() as stack:
        http_server = await stack.enter_async_context(AsyncExitStack())
        endpoint = settings.internal_endpoint or f"http://{settings.replica_name}"
        if serve:
            listener = bind(settings.listen_host, settings.listen_port)
            if settings.internal_endpoint is None and settings.listen_port == 0:
                endpoint = f"http://{settings.listen_host}:{listener.getsockname()[1]}"
            await http_server.enter_async_context(serving(build_app(health, rpc), listener))
        async with steps.step("log in and load the control block"):
            context = await _connect(stack, settings, health, declaration, etcd)
        async with steps.step("create and publish data"):
            async for attempt in _attempts():
                with attempt:
                    await _publish(context, declaration, endpoint)
        stack.callback(context.rcb.root.on_change(lambda _: _publish_profile(context, declaration, endpoint)))
        async with steps.step("load profiles of peers"):
            await _load_peer_profiles(context)
        stack.push_async_callback(_flush, context)
        await stack.enter_async_context(
            in_background(
                permissions=partial(run_permission_loop, context, declaration), node=context.node.until_closed
            )
        )
        if declaration.methods:
            # Tokens for an earlier process are refused by its id, so none is refused by its time.
            rpc.open(
                context,
                RequestVerifier(
                    context.node.account_id,
                    clock=context.node.now_ms,
                    since_ms=0,
                    credentials=context.credentials,
                ),
            )
        stack.push_async_callback(http_server.aclose)  # runs first at the stop: no new calls, and those in progress end
        health.started = True
        _log.info(
            "started",
            replica=context.name,
            account=context.node.account_id,
            endpoint=endpoint if serve else None,
            seconds=steps.seconds,
        )
        yield context
        health.started = False


async def _connect(
    stack: AsyncExitStack,
    settings: ReplicaSettings,
    health: Health,
    declaration: Declaration,
    etcd: httpx2.AsyncBaseTransport | None,
) -> Context:
    """Log in, load the control block, connect to the locks (steps 2 and 3)."""
    credentials = _credentials(settings)
    authorities = await asyncio.to_thread(trusted_authorities)  # reads a hundred certificates, the first time
    async for attempt in _attempts():
        with attempt:
            async with AsyncExitStack() as one_try:
                node = await one_try.enter_async_context(
                    Node(settings.sync_server_url, credentials, policy=declaration.writes)
                )
                await node.login()
                rcb = await ControlBlock.load(node, settings.control_block_id)
                one_try.callback(rcb.close)
                await stack.enter_async_context(one_try.pop_all())
    holder = f"{settings.replica_name} on {socket.gethostname()}"
    user = partial(find_user, node, rcb, declaration.lock_user, credentials)
    locks = await stack.enter_async_context(
        LockService(settings.etcd_hosts, space=credentials.account_id, user=user, holder=holder, transport=etcd)
    )
    http = httpx2.AsyncClient(limits=_CONNECTIONS, verify=authorities, trust_env=False)
    await stack.enter_async_context(http)
    return Context(
        node=node,
        credentials=credentials,
        settings=settings,
        health=health,
        rcb=rcb,
        locks=locks,
        public=node.account.profile.group,
        http=http,
    )


def _attempts() -> AsyncIterable[stamina.Attempt]:
    """Return retried attempts, for a step of the start that needs the sync server or etcd."""
    return stamina.retry_context(on=is_transient, attempts=None, timeout=_RETRY_WITHIN_S, wait_max=5.0)


def _credentials(settings: ReplicaSettings) -> Credentials:
    credentials = Credentials.from_secret(settings.agent_secret.get_secret_value())
    if credentials.account_id != settings.account_id:
        raise InvalidCredentials(
            f"RESIDE_AGENT_SECRET belongs to {credentials.account_id}, not to RESIDE_ACCOUNT_ID {settings.account_id}"
        )
    return credentials


async def _publish(context: Context, declaration: Declaration, endpoint: str) -> None:
    """Create and migrate the data of the contracts, then publish the profile that points to it."""
    for identity, factory in declaration.data.items():
        data = await factory(context)
        await migrate(context, identity, data, declaration.migrations.get(identity, {}))
        context.data[identity] = data
    _publish_profile(context, declaration, endpoint)
    await context.node.flush()


def _publish_profile(context: Context, declaration: Declaration, endpoint: str) -> None:
    """Publish the profile with the external endpoint in the control block, or in the settings if it has none there."""
    block = context.rcb
    external = block.external_endpoint if block.has_external_endpoint else context.settings.external_endpoint
    publish_profile(
        context.node.account.profile,
        name=context.name,
        replica_id=block.number,
        endpoints={"internal": endpoint} | ({} if external is None else {"external": external}),
        contracts={identity: _id(context.data.get(identity)) for identity in declaration.contracts},
    )


def _id(data: CoMap | None) -> CoId | None:
    return None if data is None else data.id


async def _load_peer_profiles(context: Context) -> None:
    """Load the profiles of required replicas, so that the first call is fast (step 4).

    A missing peer does not delay the start, since two replicas may require each other; its profile is loaded again when
    the peer is used.
    """
    accounts = {account for named in context.rcb.requirements().values() for account in named}
    results = await asyncio.gather(*(_load_peer_profile(context, account) for account in sorted(accounts)))
    _log.info("peers", replica=context.name, ready=results.count(True), missing=results.count(False))


async def _load_peer_profile(context: Context, account: AccountId) -> bool:
    try:
        async with asyncio.timeout(_PEERS_WITHIN_S):
            await load_profile(context.node, account)
    except Exception as error:
        if not is_transient(error):
            raise
        _log.info("peer is not ready yet", replica=context.name, account=account, error=str(error))
        return False
    return True


async def _flush(context: Context) -> None:
    """Send the last writes to the sync server, as far as the timeout allows."""
    try:
        await context.node.flush(timeout=10.0)
    except JazzError as error:
        _log.error("the last writes may not have reached the sync server", replica=context.name, error=str(error))
