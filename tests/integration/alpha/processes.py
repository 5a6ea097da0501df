"""Alpha's program as a process that a test kills or stops."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from support.alpha_cluster import CODE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.alpha_cluster import AlphaCluster


def _environment(cluster: AlphaCluster, port: int) -> dict[str, str]:
    settings = cluster.settings()
    mirrors = str(cluster.servers.registry.mirrors).replace("'", '"')
    return {
        "PATH": os.environ["PATH"],
        "RESIDE_REPLICA_NAME": "alpha",
        "RESIDE_CONTROL_BLOCK_ID": settings.control_block_id,
        "RESIDE_ACCOUNT_ID": settings.account_id,
        "RESIDE_AGENT_SECRET": settings.agent_secret.get_secret_value(),
        "RESIDE_SYNC_SERVER_URL": settings.sync_server_url,
        "RESIDE_ETCD_HOSTS": settings.etcd_hosts[0],
        "RESIDE_LISTEN_HOST": "127.0.0.1",
        "RESIDE_LISTEN_PORT": str(port),
        "RESIDE_NAMESPACE": "reside",
        "RESIDE_REGISTRY_MIRRORS": mirrors,
        "RESIDE_CLAIM_CODE": CODE,
    }


@asynccontextmanager
async def alpha_process(cluster: AlphaCluster, log: Path, port: int = 0) -> AsyncIterator[asyncio.subprocess.Process]:
    """Alpha's program, which listens on a port of loopback, and is killed at the end of the block."""
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "reside.alpha", env=_environment(cluster, port), stdout=output, stderr=output
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.wait()
