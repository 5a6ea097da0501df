"""The replica `secret` of the first implementation, on this package, in this cluster (docs/first-implementation.md).

Its data is read and written by Python, as by another replica of the cluster.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from support.eventually import eventually
from support.ports import free_port
from support.replicas import environment
from support.typescript import running

from reside.jazz import Node
from reside.model.permissions import Grant, PermissionRef
from reside.replica.profile import load_profile

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.replicas import AlphaDouble, Identity
    from support.typescript import TypeScript

    from reside.jazz import CoMap, Credentials

pytestmark = pytest.mark.anyio

CONTRACT = "ghcr.io/exeteres/reside/contracts/secret.v1"
NAME = "telegram"
ONE = Grant(granted=True, params={"name": NAME})
NONE = Grant(granted=False)


async def test_its_permissions_give_the_roles_that_they_gave(alpha_double: AlphaDouble, typescript: TypeScript) -> None:
    secret = await alpha_double.identity("secret")
    writer, reader, lister = [await alpha_double.account(name) for name in ("writer", "reader", "lister")]
    pods = [running(typescript.program("secret"), environment(secret, free_port())) for _ in range(2)]
    async with pods[0], pods[1]:
        for account, permission in ((writer, "value:read-write"), (reader, "value:read"), (writer, "value:read")):
            await alpha_double.expect(secret, on_one(account, permission), ONE)
        for account, permission in ((writer, "value:read-write"), (reader, "value:read"), (writer, "value:read")):
            await alpha_double.until_current(secret, on_one(account, permission), ONE)
        everything = PermissionRef(lister.account_id, CONTRACT, "definition:read:all")
        await alpha_double.expect(secret, everything, Grant(granted=True))
        await alpha_double.until_current(secret, everything, Grant(granted=True))
        async with opened(alpha_double, lister) as node:
            root = await data(node, secret)
            (only,) = await node.load_list(str(root["secrets"]))  # once, though two accounts asked at the same time
            found = await node.load_map(str(only))
            assert (found["id"], found["name"]) == (1, NAME)
            assert (await value(node, secret)).get("value") is None
        async with opened(alpha_double, writer) as writing, opened(alpha_double, reader) as reading:
            written, seen = await value(writing, secret), await value(reading, secret)
            written.set("value", {"token": "one"})
            await eventually("the value", lambda: seen.get("value"), lambda found: found == {"token": "one"})
            for account in (reader, writer):
                await alpha_double.expect(secret, on_one(account, "value:read"), NONE)
                await alpha_double.until_current(secret, on_one(account, "value:read"), NONE)
            written.set("value", {"token": "two"})  # another permission of this account is still in force
            await writing.flush()
        async with opened(alpha_double, writer) as node:
            assert (await value(node, secret)).get("value") == {"token": "two"}
        async with opened(alpha_double, reader) as node:
            assert (await value(node, secret)).get("value") == {"token": "one"}  # what it could read, and nothing later


def on_one(account: Credentials, permission: str) -> PermissionRef:
    """Return a permission on one secret."""
    return PermissionRef(account.account_id, CONTRACT, permission, NAME)


@asynccontextmanager
async def opened(alpha_double: AlphaDouble, account: Credentials) -> AsyncIterator[Node]:
    """Yield a node of an account that has loaded nothing yet."""
    async with Node(alpha_double.servers.jazz.url, account) as node:
        await node.login()
        yield node


async def data(node: Node, secret: Identity) -> CoMap:
    """Return the data of the contract."""
    profile = await load_profile(node, secret.credentials.account_id)
    return await node.load_map(str(profile.contracts[CONTRACT]))


async def value(node: Node, secret: Identity) -> CoMap:
    """Return the map that has the value of the secret, found as the first implementation found it."""
    root = await data(node, secret)
    look_up = await node.find_unique_map(root.group.id, f"secret.by-name.{NAME}")
    assert look_up is not None
    found = await node.load_map(str(look_up["value"]))
    return await node.load_map(str(found["value"]))
