"""The part of `typescript/probe` that calls greeters, in Python."""

from typing import Any

from reside.model.errors import ResideError
from reside.replica import Call, Replica
from reside.replica.contract_types import contract

GREETING = "registry.reside.internal/reside/contracts/greeting.v1"
PROBING = contract({"identity": "registry.example/contracts/probing.v1", "methods": {"call": {}}})
probe = Replica(PROBING)


@probe.method(PROBING.identity, "call")
async def call(command: Call) -> dict[str, Any]:
    """Call a greeter, and return its answer or the code of its refusal."""
    body = command.body
    peers = {peer.name: peer for peer in await command.context.peers(GREETING)}
    try:
        return {"code": "ok", "answer": await peers[body["peer"]].call(body["method"], body["body"])}
    except ResideError as error:
        return {"code": error.code, "message": str(error)}


if __name__ == "__main__":
    probe.launch()
