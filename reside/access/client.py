"""Client of a cluster's Kubernetes API, with ReSide's errors.

Invariant: no error message quotes the kubeconfig, because it holds credentials.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import lightkube
import yaml
from lightkube.core.exceptions import ApiError, ConfigError

from reside.access.cures import with_cure
from reside.access.expiry import why_unauthorized, why_unreachable
from reside.model.constants import FIELD_MANAGER
from reside.model.errors import InvalidInput, NotReady, ResideError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reside.access.target import Target


@asynccontextmanager
async def connect(target: Target) -> AsyncIterator[lightkube.AsyncClient]:
    """Open a client of the target's Kubernetes API, bound to its namespace.

    Raises:
        InvalidInput: the kubeconfig or its context can't be used, or its user is not accepted.
        ResideError: the API server refused a request.
        NotReady: the API server can't be reached, or a proxy responded in its place.
    """
    cluster = read_kubeconfig(target)
    client = lightkube.AsyncClient(config=cluster, namespace=target.namespace, field_manager=FIELD_MANAGER)
    server = cluster.cluster.server
    try:
        yield client
    except ApiError as error:
        if error.status.code == HTTPStatus.UNAUTHORIZED:
            raise InvalidInput(f"Kubernetes at {server}: {why_unauthorized(cluster)}") from None
        raise ResideError(with_cure(f"Kubernetes at {server} refused: {error.status.message or error}")) from None
    except httpx2.HTTPError as error:  # also HTTPStatusError: a response that is not a Status, such as a proxy's page
        raise NotReady(f"Kubernetes at {server} can't be reached: {why_unreachable(error)}") from None
    finally:
        await client.close()


def read_kubeconfig(target: Target) -> lightkube.config.kubeconfig.SingleConfig:
    """Return the cluster and user of the target's kubeconfig context.

    Raises:
        InvalidInput: the file or the context can't be used.
    """
    where = f"kubeconfig {target.kubeconfig}" if target.kubeconfig else "the default kubeconfig"
    try:
        if target.access == "in-cluster":
            config = lightkube.KubeConfig.from_service_account()
        elif target.kubeconfig is not None:
            config = lightkube.KubeConfig.from_file(target.kubeconfig)
        else:
            config = lightkube.KubeConfig.from_env()
        if target.kube_context is not None and target.kube_context not in config.contexts:
            known = ", ".join(map(str, config.contexts)) or "none"
            raise InvalidInput(
                f"context {target.kube_context!r} is not in {where} (known: {known}): choose one of these"
            )
        single = config.get(target.kube_context)
    except (ConfigError, OSError) as error:
        raise InvalidInput(
            f"{where} can't be used: {error}: name the right one with --kubeconfig or KUBECONFIG"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise InvalidInput(f"{where} is not YAML: check it with `kubectl config view`") from None
    except (AttributeError, LookupError, TypeError):
        raise InvalidInput(
            f"{where} is not a kubeconfig, or its context names a cluster or user that it does not define: "
            "check it with `kubectl config view`"
        ) from None
    if single is None:
        raise InvalidInput(f"{where} has no current context: name one with --kube-context")
    return single


def default_kubeconfig() -> Path:
    """Return the path of the kubeconfig that is used if none is named: `KUBECONFIG`, else that of the user."""
    return Path(os.environ.get("KUBECONFIG") or lightkube.config.kubeconfig.DEFAULT_KUBECONFIG).expanduser()


def is_missing(error: ApiError) -> bool:
    """Return whether the API server reports that the object does not exist."""
    return error.status.code == HTTPStatus.NOT_FOUND
