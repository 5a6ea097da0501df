"""Claim super admin, once for each cluster, for the first account that shows the bootstrap's one-time code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from reside.access.client import connect
from reside.access.objects import read_secret
from reside.access.target import Target
from reside.access.waiting import until
from reside.cli.config import Cluster, Config
from reside.cli.session import DEADLINE, open_session, target_of
from reside.common.polling import Missing
from reside.model.alpha_contract import CLAIM_SUPER_ADMIN, SUPER_ADMIN_ACCOUNT
from reside.model.constants import ACCOUNT_ID_KEY, ALPHA_NAME, CLAIM_SECRET, CLAIM_SECRET_KEY
from reside.model.endpoints import READINESS_PATH
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping


async def find_cluster(name: str, namespace: str, where: Mapping[str, Any]) -> Cluster:
    """Describe a cluster that the output of `reside cluster manifest` bootstrapped, from Alpha's Secret.

    Raises:
        InvalidInput: the namespace contains no ReSide.
    """
    target = Target(namespace, where["access"], where["kubeconfig"], where["kube_context"], DEADLINE)
    async with connect(target) as client:
        secret = await read_secret(client, ALPHA_NAME)
    if not secret or ACCOUNT_ID_KEY not in secret:
        raise InvalidInput(f"namespace {namespace} holds no ReSide (no Secret {ALPHA_NAME}): bootstrap it first")
    return Cluster(name=name, namespace=namespace, alpha_replica_id=secret[ACCOUNT_ID_KEY], **where)


async def claim(config: Config, context: str) -> None:
    """Claim super admin for a context's account.

    Raises:
        InvalidInput: there is no Secret with the one-time code.
        ResideError: Alpha refused the claim. It refuses every claim but the first.
    """
    cluster = config.cluster(config.context(context).cluster)
    async with connect(target_of(cluster)) as client:
        secret = await read_secret(client, CLAIM_SECRET)
    if not secret or CLAIM_SECRET_KEY not in secret:
        raise InvalidInput(f"namespace {cluster.namespace} has no Secret {CLAIM_SECRET} with the one-time code")
    async with open_session(config, context) as session:
        await until_answering(session.http, session.endpoint, DEADLINE)
        await session.call(CLAIM_SUPER_ADMIN, {"code": secret[CLAIM_SECRET_KEY]})


async def claim_if_free(config: Config, context: str) -> bool:
    """Claim super admin unless this account has it already; return whether it was claimed now.

    Raises:
        InvalidInput: another account has it already.
    """
    async with open_session(config, context) as session:
        holder = session.data.get(SUPER_ADMIN_ACCOUNT)
        if holder == session.node.account_id:
            return False
        if holder is not None:
            raise InvalidInput(f"cluster {context} has another super admin already: {holder}")
    await claim(config, context)
    return True


async def until_answering(http: httpx.AsyncClient, endpoint: str, deadline: float) -> None:
    """Wait until a pod of Alpha's Service is ready.

    Raises:
        NotReady: no pod is ready after `deadline` seconds.
    """

    async def look() -> None:
        try:
            response = await http.get(f"{endpoint}{READINESS_PATH}", timeout=5)
        except httpx.TransportError as error:
            raise Missing(f"Alpha does not answer: {str(error) or type(error).__name__}") from None
        if not response.is_success:
            raise Missing(f"Alpha is not ready: {response.text[:200]}")

    await until(look, "Alpha", deadline)
