"""Call the greeter with the operator's account, in the current context, and print its greeting: a program."""

from __future__ import annotations

import json
import sys

import anyio
from e2e.calls import GREETING

from reside.cli import config
from reside.cli.grantees import read_names
from reside.cli.session import open_session, replica_of
from reside.jazz import AccountId
from reside.model.endpoints import rpc_path
from reside.replica.client import call_method


async def greet() -> object:
    """Call `greet` once."""
    configuration = config.load()
    cluster = configuration.cluster(configuration.context().cluster)
    async with open_session(configuration) as session, replica_of(cluster, "greeter") as endpoint:
        return await call_method(
            session.http,
            session.credentials,
            endpoint=endpoint,
            receiver=AccountId((await read_names(session)).account("greeter")),
            path=rpc_path("greeter", GREETING, "greet"),
            body={"name": "outside"},
        )


if __name__ == "__main__":
    sys.stdout.write(json.dumps(anyio.run(greet)))
