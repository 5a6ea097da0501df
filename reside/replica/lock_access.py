"""The user with which a replica takes its locks in etcd.

Alpha puts name and password into a map that only the replica can read, and names the map in the control block. So a
login needs nothing but the replica's account, and works again after Alpha has added the user again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from reside.jazz import CoId, JazzError
from reside.locks import EtcdUser

if TYPE_CHECKING:
    from reside.jazz import Credentials, Node
    from reside.replica.control_block import ControlBlock
    from reside.replica.declaration import LockUser

_log = structlog.get_logger(__name__)

USER: Final = "user"
PASSWORD: Final = "password"  # noqa: S105 - the name of a member


async def find_user(
    node: Node, block: ControlBlock, declared: LockUser | None, credentials: Credentials
) -> EtcdUser | None:
    """Return the user of a replica; None if Alpha has not written it yet, or it can't be read."""
    if declared is not None:
        return declared(credentials)
    if block.lock_access is None:
        return None
    try:
        access = await node.load_map(CoId(block.lock_access))
    except JazzError as error:
        _log.warning("the user of etcd can't be read", control_block=block.id, error=str(error))
        return None
    name, password = access.get(USER), access.get(PASSWORD)
    return EtcdUser(name, password) if isinstance(name, str) and isinstance(password, str) else None
