"""Claim super admin, once for each cluster, for the first account that sends the one-time code of the bootstrap."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

import httpx2
import stamina

from reside.access.client import connect
from reside.access.objects import delete_pods, read_secret, write_secret
from reside.access.target import Target
from reside.access.waiting import until
from reside.cli.config import Cluster, Config
from reside.cli.session import DEADLINE, Session, open_session, target_of
from reside.common.polling import Missing
from reside.model.alpha_contract import CLAIM_SUPER_ADMIN, SUPER_ADMIN_ACCOUNT
from reside.model.constants import (
    ACCOUNT_ID_KEY,
    ALPHA_NAME,
    CLAIM_SECRET,
    CLAIM_SECRET_KEY,
    RECOVERY_PREFIX,
    REPLICA_LABEL,
)
from reside.model.endpoints import READINESS_PATH
from reside.model.errors import InvalidInput, NotAllowed

if TYPE_CHECKING:
    from collections.abc import Mapping

    import lightkube

RESTART_S: Final = 120.0
"""Seconds for Alpha to start again with a recovery code."""


async def find_cluster(name: str, namespace: str, connection: Mapping[str, Any]) -> Cluster:
    """Return the configuration of a cluster bootstrapped by `reside cluster manifest`, read from Alpha's Secret.

    Args:
        name: name of the cluster in the configuration.
        namespace: its namespace.
        connection: how to reach it: `access`, `kubeconfig` and `kube_context` of the configuration.

    Raises:
        InvalidInput: the namespace contains no ReSide cluster.
    """
    target = Target(namespace, connection["access"], connection["kubeconfig"], connection["kube_context"], DEADLINE)
    async with connect(target) as client:
        secret = await read_secret(client, ALPHA_NAME)
    if not secret or ACCOUNT_ID_KEY not in secret:
        raise InvalidInput(
            f"namespace {namespace} contains no ReSide cluster (no Secret {ALPHA_NAME}): bootstrap one first"
        )
    return Cluster(name=name, namespace=namespace, alpha_replica_id=secret[ACCOUNT_ID_KEY], **connection)


async def claim(config: Config, context: str, *, recover: bool = False) -> None:
    """Claim super admin for a context's account.

    Args:
        config: the configuration.
        context: name of the context.
        recover: whether to store a recovery code in the Secret and to restart Alpha before.

    Raises:
        InvalidInput: there is no Secret with the one-time code.
        ResideError: Alpha refused the claim. Without `recover` it refuses every claim but the first.
    """
    cluster = config.cluster(config.context(context).cluster)
    if recover:
        async with connect(target_of(cluster)) as client:
            await _store_recovery_code(client)
    code = await _read_code(cluster)
    async with open_session(config, context) as session:
        await _send(session, code, recover=recover)


async def _read_code(cluster: Cluster) -> str:
    async with connect(target_of(cluster)) as client:
        secret = await read_secret(client, CLAIM_SECRET)
    if not secret or CLAIM_SECRET_KEY not in secret:
        raise InvalidInput(
            f"namespace {cluster.namespace} has no Secret {CLAIM_SECRET} with the one-time code: check the namespace"
        )
    return secret[CLAIM_SECRET_KEY]


async def _send(session: Session, code: str, *, recover: bool = False) -> None:
    await wait_until_ready(session.http, await session.endpoint(), DEADLINE)
    attempts = stamina.retry_context(on=_is_refused if recover else (), attempts=None, timeout=RESTART_S)
    async for attempt in attempts:
        with attempt:
            await session.call(CLAIM_SUPER_ADMIN, {"code": code})


def _is_refused(error: Exception) -> bool:
    """Return whether Alpha has another code: its old pod, which read the Secret at its start, still serves."""
    return isinstance(error, NotAllowed)


async def _store_recovery_code(client: lightkube.AsyncClient) -> None:
    """Write a new recovery code into the Secret, and restart Alpha, which reads it at its start."""
    code = RECOVERY_PREFIX + secrets.token_urlsafe(24)
    await write_secret(client, CLAIM_SECRET, {CLAIM_SECRET_KEY: code})
    await delete_pods(client, {REPLICA_LABEL: ALPHA_NAME})


async def claim_if_unclaimed(config: Config, context: str) -> bool:
    """Claim super admin unless this account has it already; return whether it was claimed now.

    Raises:
        InvalidInput: another account has it already.
    """
    async with open_session(config, context) as session:
        super_admin = session.data.get(SUPER_ADMIN_ACCOUNT)
        if super_admin == session.node.account_id:
            return False
        if super_admin is not None:
            raise InvalidInput(f"cluster {context} has another super admin already, {super_admin}: use that account")
        await _send(session, await _read_code(config.cluster(config.context(context).cluster)))
    return True


async def wait_until_ready(http: httpx2.AsyncClient, endpoint: str, deadline: float) -> None:
    """Wait until a pod of Alpha's Service is ready.

    Raises:
        NotReady: no pod is ready after `deadline` seconds.
    """

    async def check() -> None:
        try:
            response = await http.get(f"{endpoint}{READINESS_PATH}", timeout=5)
        except httpx2.TransportError as error:
            raise Missing(f"no connection: {str(error) or type(error).__name__}") from None
        if not response.is_success:
            raise Missing(f"Alpha is not ready: {response.text[:200]}")

    await until(check, "Alpha", deadline)
