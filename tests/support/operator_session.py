"""The operator's session with a cluster, opened in this process: tests poll, and each `reside` uses 1.3 s of CPU.

A session has the operator's configuration and account, as the command has.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from reside.cli import config
from reside.cli.replicas import ReplicaView
from reside.cli.session import open_session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from reside.cli.session import Session


@asynccontextmanager
async def operator_session(environment: Mapping[str, str]) -> AsyncIterator[Session]:
    """Yield a session with the current context of the configuration that this environment names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RESIDE_CONFIG", environment["RESIDE_CONFIG"])
        async with open_session(config.load()) as session:
            yield session


def replica_rows(environment: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the rows of `reside replica list`."""

    async def run() -> list[dict[str, Any]]:
        async with operator_session(environment) as session:
            return await ReplicaView(session.node, session.data).rows()

    return anyio.run(run)
