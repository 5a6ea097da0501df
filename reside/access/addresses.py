"""Addresses of Jazz, etcd and replicas for the seed and for operators: by name, cluster address or port-forward.

The seed uses these addresses for its own connections only. Objects that it renders always contain the in-cluster names.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from reside.access.client import connect
from reside.access.forward import PortForward
from reside.access.objects import service_address
from reside.access.target import Target
from reside.access.waiting import until
from reside.local import Toolchain
from reside.model.constants import ETCD_NAME, ETCD_PORT, ETCD_URL, JAZZ_NAME, JAZZ_PORT, JAZZ_URL, SERVICE_PORT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["IN_CLUSTER", "Addresses", "Target", "addresses", "jazz_address", "replica_address"]


@dataclass(frozen=True)
class Addresses:
    """Addresses of Jazz (`ws://…`) and etcd (`http://…`) as this process reaches them."""

    jazz: str
    etcd: str


IN_CLUSTER = Addresses(jazz=JAZZ_URL, etcd=ETCD_URL)


@asynccontextmanager
async def addresses(target: Target) -> AsyncIterator[Addresses]:
    """Yield the addresses of Jazz and etcd, valid while the block is open."""
    async with jazz_address(target) as jazz, _host_port(target, ETCD_NAME, ETCD_PORT) as etcd:
        yield Addresses(jazz=jazz, etcd=f"http://{etcd}")


@asynccontextmanager
async def jazz_address(target: Target) -> AsyncIterator[str]:
    """Yield the address `ws://…` of Jazz, valid while the block is open."""
    async with _host_port(target, JAZZ_NAME, JAZZ_PORT) as address:
        yield f"ws://{address}"


@asynccontextmanager
async def replica_address(target: Target, name: str) -> AsyncIterator[str]:
    """Yield the address `http://…` of a replica's Service, valid while the block is open."""
    async with _host_port(target, name, SERVICE_PORT) as address:
        yield f"http://{address}"


@asynccontextmanager
async def _host_port(target: Target, service: str, port: int) -> AsyncIterator[str]:
    if target.access == "in-cluster":
        yield f"{service}:{port}"
        return
    async with connect(target) as client:
        look = partial(service_address, client, service)
        address = await until(look, f"Service {service} in namespace {target.namespace}", target.deadline)
    if target.access == "direct":
        yield f"{address}:{port}"
        return
    kubeconfig = Path(target.kubeconfig) if target.kubeconfig else None
    kubectl = Toolchain.default().find("kubectl")
    async with PortForward(
        kubeconfig, target.kube_context, target.namespace, f"svc/{service}", port, kubectl=kubectl
    ) as forward:
        yield forward.address
