"""Read access to a running cluster with the credentials of one of its replicas, as an administrator has it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from reside.jazz import Credentials, Node
from reside.model.permissions import Grant
from reside.replica.control_block import ControlBlock
from reside.testing.alpha import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.platform import Platform

    from reside.model.permissions import PermissionRef


def credentials(platform: Platform, replica: str) -> Credentials:
    """Return the Jazz credentials of a replica from its Secret."""
    return Credentials.from_secret(platform.secret(replica)["agentSecret"])


def address(platform: Platform, service: str, port: int) -> str:
    """Return `host:port` of a Service; cluster addresses are reachable from this machine."""
    return f"{platform.get('Service', service)['spec']['clusterIP']}:{port}"


async def registered(platform: Platform) -> Credentials:
    """Return a new account that is registered in the cluster's Jazz and has no grants."""
    fresh = Credentials.generate()
    async with Node(f"ws://{address(platform, 'jazz', 4200)}", fresh) as node:
        await node.register("stranger")
        await node.flush()
    return fresh


@asynccontextmanager
async def _block(platform: Platform, replica: str) -> AsyncIterator[tuple[Node, ControlBlock]]:
    """Yield a replica's control block, opened with that replica's account."""
    pod = platform.ready_pods(replica)[0]
    environment = {e["name"]: e.get("value") for e in pod["spec"]["containers"][0]["env"]}
    async with signed_in(platform, replica) as node:
        yield node, await ControlBlock.load(node, str(environment["RESIDE_CONTROL_BLOCK_ID"]))


@asynccontextmanager
async def signed_in(platform: Platform, replica: str) -> AsyncIterator[Node]:
    """Yield a Jazz node with a replica's account."""
    async with Node(f"ws://{address(platform, 'jazz', 4200)}", credentials(platform, replica)) as node:
        await node.login()
        yield node


async def block_permissions(platform: Platform, replica: str) -> list[dict[str, Any]]:
    """Return the permissions in a replica's control block, as that replica sees them."""
    async with _block(platform, replica) as (_, block):
        return [
            {
                "account": p.ref.account,
                "name": p.ref.name,
                "expected": p.expected.document(),
                "current": p.current.document() if p.current else {"granted": False},
            }
            for p in block.permissions()
        ]


async def grant(platform: Platform, replica: str, ref: PermissionRef) -> None:
    """Let a replica grant a permission, and wait until it has."""
    grant = Grant(granted=True)
    async with _block(platform, replica) as (node, block), asyncio.timeout(60):
        await block.set_expected(ref, grant)
        await node.flush()
        await until(block, lambda: (found := block.find(ref)) is not None and found.current == grant)
