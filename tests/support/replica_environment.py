"""The settings that every replica has, for one that runs in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reside.jazz import Credentials


def replica_members(jazz: str, etcd: str, credentials: Credentials, block: str, name: str) -> dict[str, Any]:
    """Return the members of `ReplicaSettings` for a replica that listens on a free port of loopback.

    Args:
        jazz: URL of the sync server.
        etcd: URL of etcd.
        credentials: of the replica's account.
        block: id of its control block.
        name: its name.
    """
    return {
        "replica_name": name,
        "control_block_id": block,
        "account_id": credentials.account_id,
        "agent_secret": credentials.agent_secret,
        "sync_server_url": jazz,
        "etcd_hosts": (etcd,),
        "listen_host": "127.0.0.1",
        "listen_port": 0,
    }
