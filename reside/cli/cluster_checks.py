"""The checks of `reside doctor` of a cluster: by Kubernetes, by its domain, and through Jazz and Alpha."""

from __future__ import annotations

import asyncio
import base64
import ssl
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httpx2
from cryptography import x509
from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import ConfigMap, Pod

from reside.access.client import connect, is_missing, read_kubeconfig
from reside.access.forward import PortForward
from reside.cli import project
from reside.cli.alpha_account import UNREACHABLE_CURE
from reside.cli.cluster_options import IMAGES
from reside.cli.findings import Check, Finding, in_thread
from reside.cli.listing import short_digest
from reside.cli.replicas import ReplicaView
from reside.cli.session import target_of
from reside.common.tls import trusted_authorities
from reside.local import Toolchain
from reside.model.alpha_contract import EXPLAIN_PERMISSION, SUPER_ADMIN_PERMISSIONS
from reside.model.constants import (
    ALPHA_CONTRACT,
    ALPHA_ID,
    ALPHA_NAME,
    CLUSTER_RECORD,
    LISTEN_PORT,
    REPLICA_LABEL,
    SENTINEL_NAME,
)
from reside.model.endpoints import account_path
from reside.model.errors import NotAllowed, NotReady
from reside.seed.preflight import MAXIMUM_SKEW_S, check_clock
from reside.seed.settings import read_images

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from reside.access.target import Target
    from reside.cli.config import Cluster
    from reside.cli.session import Session

LEADERS: Final = {ALPHA_NAME: "reside_alpha_leader", SENTINEL_NAME: "reside_sentinel_leader"}
"""Replica → the metric that is 1 in the process that leads."""
SOON: Final = timedelta(days=14)
"""Time before its end from which on a certificate is a warning."""
_PAUSE_S: Final = 0.5
_ROUNDS: Final = 8
"""How often pods are asked whether one leads."""
_SYNCHRONISE: Final = "synchronise both clocks (`timedatectl set-ntp true`)"


def reachability_checks(cluster: Cluster) -> list[Check]:
    """Return the checks that need no Jazz: Kubernetes or the domain, its clock and its certificates."""
    if cluster.access == "endpoint":
        return [
            Check("domain and clock", partial(domain, str(cluster.endpoint))),
            Check("certificates", partial(in_thread, lambda: certificates(domain_ends(str(cluster.endpoint))))),
        ]
    return [
        Check("kubernetes", partial(kubernetes, cluster)),
        Check("clock", partial(clock, cluster)),
        Check("certificates", partial(in_thread, lambda: certificates(kubernetes_ends(cluster)))),
    ]


def session_checks(cluster: Cluster, session: Session) -> list[Check]:
    """Return the checks that use a session with Jazz and Alpha."""
    checks = [Check("permissions", partial(permissions, session)), Check("release", partial(release, session))]
    if cluster.access != "endpoint":  # the domain does not serve metrics
        checks += [Check(f"{name} leads", partial(leads, cluster, name)) for name in LEADERS]
    return checks


async def kubernetes(cluster: Cluster) -> Finding:
    """Read the record of the last bootstrap."""
    name = "kubernetes"
    async with connect(target_of(cluster)) as client:
        try:
            data = (await client.get(ConfigMap, CLUSTER_RECORD)).data or {}
        except ApiError as error:
            if error.status.code == HTTPStatus.FORBIDDEN:
                return Finding("ok", name, "it answers; this user may not read how the bootstrap went")
            if is_missing(error):
                what = f"namespace {cluster.namespace} has no record of a bootstrap"
                return Finding("warning", name, what, f"`reside cluster bootstrap {cluster.name}` continues one")
            raise
    result = data.get("result")
    if result == "succeeded":
        return Finding("ok", name, f"namespace {cluster.namespace}; the last bootstrap succeeded")
    what = f"the last bootstrap is {result}" + (f": {data['error']}" if data.get("error") else "")
    return Finding("warning", name, what, data.get("cure") or f"`reside cluster bootstrap {cluster.name}` continues it")


async def clock(cluster: Cluster) -> Finding:
    """Compare this machine's clock with that of the Kubernetes API."""
    async with connect(target_of(cluster)) as client:
        try:
            await check_clock(client)
        except ApiError as error:
            if error.status.code != HTTPStatus.FORBIDDEN:
                raise
            return Finding("ok", "clock", "not compared, since this user may not create a ConfigMap")
    return Finding("ok", "clock", f"less than {MAXIMUM_SKEW_S:g} s from that of the Kubernetes API")


async def domain(endpoint: str) -> Finding:
    """Ask the domain for Alpha's account, and compare the clocks by the answer's date."""
    name = "domain and clock"
    async with httpx2.AsyncClient(verify=trusted_authorities(), trust_env=False) as http:
        try:
            answer = await http.get(f"{endpoint}{account_path(ALPHA_NAME)}")
        except httpx2.TransportError as error:
            what = f"{endpoint} can't be reached: {error or type(error).__name__}"
            return Finding("failed", name, what, UNREACHABLE_CURE)
    if answer.status_code != HTTPStatus.OK:
        what = f"{endpoint} answers with HTTP {answer.status_code}"
        return Finding("failed", name, what, "check the domain, the ingress controller, and whether Alpha runs")
    skew = skew_of(answer.headers.get("date"), datetime.now(UTC))
    if skew is not None and abs(skew) > MAXIMUM_SKEW_S:
        return Finding("failed", name, f"{endpoint} answers; its clock is {abs(skew):.0f} s off", _SYNCHRONISE)
    return Finding("ok", name, f"{endpoint} answers" + ("" if skew is None else "; the clocks agree"))


def skew_of(date: str | None, now: datetime) -> float | None:
    """Return how many seconds a clock is ahead of the date in an answer; None without a readable date."""
    try:
        there = parsedate_to_datetime(date or "")
    except ValueError:
        return None
    return (now - there).total_seconds() if there.tzinfo else None


def certificates(ends: Mapping[str, datetime], now: datetime | None = None) -> Finding:
    """Judge certificates by their ends."""
    moment = now or datetime.now(UTC)
    if not ends:
        return Finding("ok", "certificates", "none is used")
    what, end = min(ends.items(), key=lambda item: item[1])
    left = end - moment
    if left < timedelta(0):
        return Finding("failed", "certificates", f"that of {what} expired on {end:%Y-%m-%d}", "renew it")
    said = f"that of {what} ends first, on {end:%Y-%m-%d}, in {left.days} days"
    return Finding("warning", "certificates", said, "renew it") if left < SOON else Finding("ok", "certificates", said)


def kubernetes_ends(cluster: Cluster) -> dict[str, datetime]:
    """Return when the certificates of the API server and of the kubeconfig's user end."""
    single = read_kubeconfig(target_of(cluster))
    found = {}
    if single.cluster.server and single.cluster.server.startswith("https://"):
        found["the Kubernetes API"] = _server_end(single.cluster.server)
    user = single.user
    if user is not None and user.client_cert_data:
        found["the kubeconfig's user"] = _end(base64.b64decode(user.client_cert_data))
    elif user is not None and user.client_cert:
        found["the kubeconfig's user"] = _end(Path(single.abs_file(user.client_cert)).read_bytes())
    return found


def domain_ends(endpoint: str) -> dict[str, datetime]:
    """Return when the certificate of a domain ends."""
    return {endpoint: _server_end(endpoint)}


def _server_end(url: str) -> datetime:
    address = urlsplit(url)
    try:
        pem = ssl.get_server_certificate((address.hostname or "", address.port or 443), timeout=30)
    except OSError as error:
        why = error.strerror or error
        raise NotReady(f"the certificate of {url} can't be read: {why}; check the address and the network") from None
    return _end(pem.encode())


def _end(pem: bytes) -> datetime:
    return x509.load_pem_x509_certificate(pem).not_valid_after_utc


async def leads(cluster: Cluster, replica: str) -> Finding:
    """Look for the pod of a replica that leads; a change of leader takes a moment."""
    name = f"{replica} leads"
    target = target_of(cluster)
    async with connect(target) as client:
        try:
            found = [pod async for pod in client.list(Pod, labels={REPLICA_LABEL: replica})]
        except ApiError as error:
            if error.status.code != HTTPStatus.FORBIDDEN:
                raise
            return Finding("ok", name, "not checked, since this user may not list pods")
    running = [pod for pod in found if pod.status and pod.status.phase == "Running"]
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(httpx2.AsyncClient(trust_env=False))
        addresses = [await stack.enter_async_context(_pod_address(target, pod)) for pod in running]
        for _ in range(_ROUNDS):
            pages = [page for each in addresses if (page := await _metrics(http, each)) is not None]
            finding = judge_leader(replica, [metric_of(page, LEADERS[replica]) for page in pages])
            if finding.status != "failed":
                break
            await asyncio.sleep(_PAUSE_S)
        return finding


def judge_leader(replica: str, values: Sequence[float | None]) -> Finding:
    """Judge a replica by the metric of each of its pods that answers; None: a pod does not have the metric."""
    name, see = f"{replica} leads", f"see `reside replica describe {replica}` and `reside replica logs {replica}`"
    if 1 in values:
        return Finding("ok", name, f"one of {len(values)} pods")
    if None in values:
        return Finding("warning", name, "it is of an earlier release, and does not tell", "`reside cluster upgrade`")
    return Finding("failed", name, f"none of {len(values)} pods" if values else "no pod answers", see)


@asynccontextmanager
async def _pod_address(target: Target, pod: Pod) -> AsyncIterator[str]:
    if target.access == "direct":
        yield f"http://{pod.status.podIP if pod.status else None}:{LISTEN_PORT}"
        return
    kubeconfig = Path(target.kubeconfig) if target.kubeconfig else None
    kubectl = Toolchain.default().find("kubectl")
    what = f"pod/{pod.metadata.name if pod.metadata else None}"
    async with PortForward(
        kubeconfig, target.kube_context, target.namespace, what, LISTEN_PORT, kubectl=kubectl
    ) as forward:
        yield forward.url


async def _metrics(http: httpx2.AsyncClient, address: str) -> str | None:
    """Return the page with the metrics of a pod; None if the pod does not answer."""
    try:
        return (await http.get(f"{address}/metrics")).text
    except httpx2.TransportError:
        return None


def metric_of(page: str, metric: str) -> float | None:
    """Return the value of a metric without labels on a page for Prometheus; None if it is not there."""
    for line in page.splitlines():
        name, _, value = line.partition(" ")
        if name == metric:
            return float(value)
    return None


async def permissions(session: Session) -> Finding:
    """Ask Alpha which of its permissions this account has; any account may ask that about itself."""

    async def is_held(permission: str) -> bool:
        body = {"replica": ALPHA_ID, "contract": ALPHA_CONTRACT, "permission": permission, "instanceId": None}
        answer = await session.call(EXPLAIN_PERMISSION, body | {"account": session.node.account_id})
        return bool(answer["inForce"])

    first, *others = SUPER_ADMIN_PERMISSIONS
    known = [await is_held(first)]  # alone: from its answer, the others know Alpha's process
    known += await asyncio.gather(*map(is_held, others))
    held = [permission for permission, is_in_force in zip(SUPER_ADMIN_PERMISSIONS, known, strict=True) if is_in_force]
    return rights(session.node.account_id, held)


def rights(account: str, held: list[str]) -> Finding:
    """Judge the permissions on Alpha that an account has."""
    lacking = [each for each in SUPER_ADMIN_PERMISSIONS if each not in held]
    if not lacking:
        return Finding("ok", "permissions", "all of a super admin on Alpha")
    if held:
        return Finding("ok", "permissions", f"{', '.join(held)} on Alpha")
    cure = f"an administrator runs `reside permission grant {account} {ALPHA_NAME} {lacking[0]}`"
    return Finding("warning", "permissions", "none on Alpha", cure)


async def release(session: Session) -> Finding:
    """Compare the images of the cluster's Alpha and Sentinel with those of this machine's release."""
    try:
        rows = await ReplicaView(session.node, session.data).rows()
    except NotAllowed as error:
        return Finding("warning", "release", f"not compared: {error}")
    path = project.state_folder() / IMAGES
    local = await in_thread(lambda: read_images(path) if path.exists() else None)
    return release_of({row["name"]: str(row["digest"]) for row in rows if row["name"] in LEADERS}, local)


def release_of(running: Mapping[str, str], local: Mapping[str, str] | None) -> Finding:
    """Judge the release of a cluster.

    Args:
        running: name of a replica of the platform → digest of its image.
        local: name of an image → `identity@digest` of this machine's release; None if it has none.
    """
    shown = ", ".join(f"{name} {short_digest(digest)}" for name, digest in running.items())
    if local is None:
        return Finding("ok", "release", f"the cluster has {shown}; this machine has built no images to compare")
    other = list(_changed(running, local))
    if not other:
        return Finding("ok", "release", f"that of this machine: {shown}")
    what = f"the cluster has another {' and '.join(other)} than this machine's release"
    return Finding("warning", "release", what, "`reside cluster upgrade` shows what it would change")


def _changed(running: Mapping[str, str], local: Mapping[str, str]) -> Iterator[str]:
    for name, digest in running.items():
        if name in local and local[name].rpartition("@")[2] != digest:
            yield name
