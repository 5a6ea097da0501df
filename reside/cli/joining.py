"""`reside cluster add`: use a cluster by its domain alone, without Kubernetes."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Final

import typer

from reside.cli import config, output
from reside.cli.accounts import create_account
from reside.cli.alpha_account import ACCOUNT_ID, ask_for_alpha
from reside.jazz import AccountId
from reside.model.errors import InvalidInput

_HOST: Final = re.compile(r"(?:(?:https|wss)://)?([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?)/?")


def endpoint_url(endpoint: str) -> str:
    """Return the URL of a cluster's domain, `https://HOST[:PORT]`.

    Raises:
        InvalidInput: it is not a host name, or names a connection without a certificate.
    """
    match = _HOST.fullmatch(endpoint.strip().lower())
    if match is None:
        raise InvalidInput(
            f"{endpoint!r} is not the domain of a cluster: use HOST, HOST:PORT, https://HOST or wss://HOST"
        )
    return f"https://{match[1]}"


def add(
    name: Annotated[str, typer.Argument(help="Name of the cluster in the local configuration.")],
    endpoint: Annotated[str, typer.Argument(help="Domain of the cluster: HOST, https://HOST or wss://HOST.")],
    *,
    alpha: Annotated[
        str | None,
        typer.Option(
            help="Account of the cluster's Alpha: `alphaReplicaId` of `reside cluster info` on another machine. The "
            "domain is asked for it if it is not given."
        ),
    ] = None,
    account: Annotated[str, typer.Option(help="Account to use with the cluster. Created if missing.")] = "admin",
) -> None:
    """Add a cluster that is reached by its domain: no kubeconfig is needed, and certificates are verified.

    The cluster's Alpha is the one that the domain names now; --alpha names another source of trust.

    An own certificate authority is named by the environment variable SSL_CERT_FILE.
    """
    config.check_cluster_name(name)
    url = endpoint_url(endpoint)
    config.load().check_place(name, (url, None, None, None))
    found = asyncio.run(ask_for_alpha(url)) if alpha is None else _account_id(alpha)
    cluster = config.Cluster(name=name, endpoint=url, alpha_replica_id=found, access="endpoint")
    if not any(entry.name == account for entry in config.load().accounts):
        create_account(account)
    configuration = config.change(lambda current: current.with_cluster(cluster, account))
    output.console.print(f"cluster {name} is added; context {name} is current", markup=False)
    own = configuration.account(account).account_id
    output.console.print(f"its operators grant permissions to account {own}", soft_wrap=True, markup=False)


def _account_id(text: str) -> AccountId:
    if not re.fullmatch(ACCOUNT_ID, text):
        raise InvalidInput(f"{text!r} is not the id of an account: see `alphaReplicaId` of `reside cluster info`")
    return AccountId(text)
