"""The framework for replicas: start (docs/model.md, section 7), control block, permission loop, RPC, transactions.

A replica's code declares functions on a `Replica` and calls `launch()`; the rest is the same for all replicas.

    greeter = Replica(load_contract(Path("contract.yaml")))

    @greeter.method(GREETING, "greet")
    async def greet(call: Call) -> dict[str, Any]:
        call.require("greet")
        return {"message": f"Hello, {call.body['name']}"}

Invariants: importing a replica's code has no side effects; a permission is in force only while `current` in the
replica's own control block grants it; a transaction writes nothing after its lock was lost.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from reside.common.tracing import span
    from reside.jazz import Json
    from reside.replica.call import Call
    from reside.replica.context import Context
    from reside.replica.contracts import load_contract
    from reside.replica.control_block import ControlBlock
    from reside.replica.declaration import STRICT_WRITES
    from reside.replica.peers import Peer
    from reside.replica.replica import Replica
    from reside.replica.settings import ReplicaSettings
    from reside.replica.transactions import Transaction

__all__ = [
    "STRICT_WRITES",
    "Call",
    "Context",
    "ControlBlock",
    "Json",
    "Peer",
    "Replica",
    "ReplicaSettings",
    "Transaction",
    "load_contract",
    "span",
]

_HOMES: Final = {
    "STRICT_WRITES": "reside.replica.declaration",
    "Call": "reside.replica.call",
    "Context": "reside.replica.context",
    "ControlBlock": "reside.replica.control_block",
    "Json": "reside.jazz",
    "Peer": "reside.replica.peers",
    "Replica": "reside.replica.replica",
    "ReplicaSettings": "reside.replica.settings",
    "Transaction": "reside.replica.transactions",
    "load_contract": "reside.replica.contracts",
    "span": "reside.common.tracing",
}
"""Name → its module. They are imported at first use: a client of replicas, as the command is, needs no framework."""


def __getattr__(name: str) -> Any:
    """Import a name at its first use; see `_HOMES`."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
