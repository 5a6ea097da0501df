"""How whoever bootstraps reaches Jazz and etcd: by name in a pod, by cluster address, or through the Kubernetes API.

The seed's own connections use these addresses; what it renders for others always bears the in-cluster names.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from reside.kube import PortForward
from reside.model.constants import ETCD_PORT, JAZZ_PORT
from reside.seed.kubernetes import connect, service_address
from reside.seed.platform import ETCD, JAZZ
from reside.seed.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stacks.settings import BootstrapSettings


@dataclass(frozen=True)
class Addresses:
    """Where Jazz (``ws://…``) and etcd (``http://…``) answer the one who asks."""

    jazz: str
    etcd: str


IN_CLUSTER = Addresses(jazz=f"ws://{JAZZ}:{JAZZ_PORT}", etcd=f"http://{ETCD}:{ETCD_PORT}")


@asynccontextmanager
async def addresses(settings: BootstrapSettings) -> AsyncIterator[Addresses]:
    """Addresses that are valid while the block is open."""
    if settings.access == "in-cluster":
        yield IN_CLUSTER
    elif settings.access == "direct":
        async with connect(settings) as client:
            jazz = await until(partial(service_address, client, JAZZ), f"Service {JAZZ}", settings.deadline)
            etcd = await until(partial(service_address, client, ETCD), f"Service {ETCD}", settings.deadline)
        yield Addresses(jazz=f"ws://{jazz}:{JAZZ_PORT}", etcd=f"http://{etcd}:{ETCD_PORT}")
    else:
        async with _forward(settings, JAZZ, JAZZ_PORT) as jazz, _forward(settings, ETCD, ETCD_PORT) as etcd:
            yield Addresses(jazz=f"ws://{jazz}", etcd=f"http://{etcd}")
