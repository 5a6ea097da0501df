"""A session of the command with one cluster: a Jazz node, Alpha's data, and calls of Alpha's methods.

All reads come from Jazz, which validates them. A write is a load request value in Jazz or a call of a method of Alpha.
Each call has its own token, which only Alpha accepts, and only for this call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from reside.access.errors import PortForwardError
from reside.access.target import Target
from reside.cli import library_logs
from reside.cli.accounts import credentials_of
from reside.cli.notices import Notice
from reside.common.tls import no_authorities, trusted_authorities
from reside.jazz import AccountId, CoMap, Credentials, JazzUnavailable, Node, ValueNotFound
from reside.model import identities
from reside.model.constants import ALPHA_CONTRACT, ALPHA_NAME
from reside.model.endpoints import rpc_path
from reside.model.errors import AnswerLost, InvalidInput, NotReady
from reside.replica.profile import load_contracts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2

    from reside.cli.config import Cluster, Config
    from reside.replica.client import Process

DEADLINE = 60.0
"""Seconds to wait for the cluster's Services and for Alpha's data."""
SLOW_S = 5.0
"""Seconds after which a call is said to be slow."""
CONNECT_S = 15.0
"""Seconds to wait for a connection to Jazz."""
ALPHA_WITHIN_S = 120.0
"""Seconds for which a call is retried while Alpha is not available: its start may take this long."""

Endpoint = Callable[[], Awaitable[str]]
"""Returns the base address of a Service."""


@dataclass(frozen=True)
class Session:
    """An open connection to one cluster with one account."""

    node: Node
    credentials: Credentials
    data: CoMap
    """Alpha's data map."""
    alpha: AccountId
    """Alpha's account."""
    endpoint: Endpoint
    """Of Alpha's Service."""
    open_http: Callable[[], httpx2.AsyncClient]
    processes: dict[AccountId, Process] = field(default_factory=dict)
    """See `call_method`."""
    notice: Notice = field(default_factory=Notice)
    """What calls wait for: those at the same time say it once."""

    @property
    def http(self) -> httpx2.AsyncClient:
        """The HTTP client of the session, made at its first use: its certificate authorities take long to load."""
        return self.open_http()

    async def call(self, method: str, body: dict[str, Any]) -> Any:
        """Call a method of Alpha; wait while Alpha restarts, and show that.

        Raises:
            AnswerLost: Alpha may have carried out the call, but its answer did not arrive.
            ResideError: the error that Alpha returned, or Alpha can't be reached.
        """
        from reside.replica.client import call_method  # noqa: PLC0415 - slow to import, and reads do without

        library_logs.set_up()
        notice = self.notice
        slow = f"Alpha has not answered {method} for {SLOW_S:.0f} s: it may wait for etcd or Jazz"
        try:
            with notice.after(SLOW_S, slow):
                answer = await call_method(
                    self.http,
                    self.credentials,
                    endpoint=await self.endpoint(),
                    receiver=self.alpha,
                    path=rpc_path(ALPHA_NAME, ALPHA_CONTRACT, method),
                    body=body,
                    within_s=ALPHA_WITHIN_S,
                    processes=self.processes,
                    waiting=notice.waits,
                )
            notice.goes_on()
        except AnswerLost:
            raise
        except NotReady as error:
            raise NotReady(f"{error}: `reside doctor` shows which part is away") from None
        finally:
            notice.ends()
        return answer


def target_of(cluster: Cluster) -> Target:
    """Return how the Kubernetes API of a configured cluster is reached.

    Raises:
        InvalidInput: the cluster is reached by its domain alone.
    """
    if cluster.access == "endpoint" or cluster.namespace is None:
        raise InvalidInput(
            f"this needs Kubernetes, and cluster {cluster.name} is reached by its domain alone: run it on a machine "
            "that has a kubeconfig of the cluster"
        )
    return Target(cluster.namespace, cluster.access, cluster.kubeconfig, cluster.kube_context, DEADLINE)


@asynccontextmanager
async def jazz_of(cluster: Cluster) -> AsyncIterator[str]:
    """Yield the address of a configured cluster's Jazz, valid while the block is open."""
    if cluster.access == "endpoint" and cluster.endpoint is not None:
        yield f"wss://{cluster.endpoint.removeprefix('https://')}"
        return
    from reside.access.addresses import jazz_address  # noqa: PLC0415 - slow to import, and not needed with a domain

    async with jazz_address(target_of(cluster)) as address:
        yield address


@asynccontextmanager
async def replica_of(cluster: Cluster, name: str) -> AsyncIterator[str]:
    """Yield the address of a replica of a configured cluster, valid while the block is open."""
    if cluster.access == "endpoint" and cluster.endpoint is not None:
        yield cluster.endpoint
        return
    from reside.access.addresses import replica_address  # noqa: PLC0415 - as above

    async with replica_address(target_of(cluster), name) as address:
        yield address


@asynccontextmanager
async def open_session(
    config: Config, context: str | None = None, *, calls_alpha: bool = False
) -> AsyncIterator[Session]:
    """Connect to a context's cluster with its account.

    Args:
        config: the configuration.
        context: name of the context; None: the current one.
        calls_alpha: whether Alpha will be called: then its address is looked for while Jazz is connected to.

    Raises:
        InvalidInput: the configuration lacks the context, its cluster or its account.
        NotReady: Jazz or Alpha is not available.
    """
    chosen = config.context(context)
    cluster, account = config.cluster(chosen.cluster), config.account(chosen.account)
    credentials = credentials_of(account)
    opened = AsyncExitStack()
    endpoint = opened_once(lambda: opened.enter_async_context(replica_of(cluster, ALPHA_NAME)))
    async with (
        opened,
        opened_meanwhile(endpoint) if calls_alpha else nullcontext(),
        jazz_of(cluster) as jazz,
        _node(jazz, account.name, credentials) as node,
    ):
        alpha = AccountId(cluster.alpha_replica_id)
        http = http_client_of(opened, tls=cluster.access == "endpoint")
        yield Session(node, credentials, await _alpha_data(node, alpha), alpha, endpoint, http)


def http_client_of(stack: AsyncExitStack, *, tls: bool) -> Callable[[], httpx2.AsyncClient]:
    """Return a function that makes an HTTP client at its first call; the stack closes it.

    Args:
        stack: closes the client.
        tls: whether it reaches the cluster by its domain; otherwise all addresses are plain HTTP.
    """
    made: list[httpx2.AsyncClient] = []

    def client() -> httpx2.AsyncClient:
        if not made:
            import httpx2  # noqa: PLC0415 - slow to import, and reads do without

            verify = trusted_authorities() if tls else no_authorities()
            made.append(httpx2.AsyncClient(verify=verify, trust_env=False))
            stack.push_async_callback(made[0].aclose)
        return made[0]

    return client


def endpoint_at(address: str) -> Endpoint:
    """Return an endpoint whose address is known."""

    async def endpoint() -> str:
        return address

    return endpoint


def opened_once(open_it: Callable[[], Awaitable[str]]) -> Endpoint:
    """Return an endpoint that is opened at its first use: most commands only read Jazz, and a port-forward is slow.

    It raises NotReady if a port-forward is not ready in time, as while no pod runs, and then tries again.
    """
    address: list[str] = []
    lock = asyncio.Lock()

    async def endpoint() -> str:
        async with lock:
            if not address:
                try:
                    address.append(await open_it())
                except PortForwardError as error:
                    raise NotReady(str(error)) from None
        return address[0]

    return endpoint


@asynccontextmanager
async def opened_meanwhile(endpoint: Endpoint) -> AsyncIterator[None]:
    """Open an endpoint and import what calls need while the block runs. The endpoint raises the error of a failure."""

    async def prepare() -> None:
        await asyncio.gather(endpoint(), asyncio.to_thread(import_module, "reside.replica.client"))

    preparing = asyncio.create_task(prepare())
    try:
        yield
    finally:
        preparing.cancel()
        await asyncio.gather(preparing, return_exceptions=True)


@asynccontextmanager
async def _node(url: str, name: str, credentials: Credentials) -> AsyncIterator[Node]:
    try:
        async with Node(url, credentials, connect_timeout=CONNECT_S) as node:
            await node.register(name)
            await node.flush()
            yield node
    except JazzUnavailable as error:
        from reside.cli.explanations import with_cure  # noqa: PLC0415 - needed only after an error

        text = f"Jazz can't be reached at {url}: {error}: `reside doctor` shows which part is away"
        raise NotReady(with_cure(text)) from None


async def _alpha_data(node: Node, alpha: str) -> CoMap:
    try:
        account = await node.load_account(alpha)
        profile = await account.load_profile()
    except ValueNotFound:
        raise NotReady(
            f"Alpha's account {alpha} is not in this cluster's Jazz: if the cluster was bootstrapped again, "
            "run `reside cluster claim-super-admin-access` with --namespace"
        ) from None
    contracts = await load_contracts(node, profile)
    identities.use(identities.repository_in(contracts, ALPHA_CONTRACT) or identities.repository())
    data = contracts.get(identities.resolved(ALPHA_CONTRACT))
    if not isinstance(data, str):
        raise NotReady("Alpha has not published its data yet: wait until its pod is ready")
    return await node.load_map(data)
