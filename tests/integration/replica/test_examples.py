"""The example replicas as processes on a real sync server and etcd do what the tutorial says."""

from __future__ import annotations

import json
import sys
from asyncio import subprocess
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from support.eventually import eventually
from support.ports import free_port
from support.replicas import GREETING, AlphaDouble, environment

from reside.jazz import Node
from reside.model.permissions import Grant, PermissionRef
from reside.replica.profile import load_profile

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.replicas import Identity

pytestmark = pytest.mark.anyio

EXAMPLES = Path(__file__).parents[3] / "examples" / "replicas"


async def test_the_caller_is_refused_before_the_grant_and_greeted_after_it_also_by_the_next_version(
    alpha_double: AlphaDouble,
) -> None:
    greeter, caller = await alpha_double.identity("greeter"), await alpha_double.identity("caller")
    caller.rcb.set_requirements({"greeting": [greeter.credentials.account_id]})
    await alpha_double.node.flush()
    async with (
        example("caller", caller, free_port()) as metrics,
        Node(alpha_double.servers.jazz.url, await alpha_double.account("reader")) as reader,
    ):
        await reader.login()
        async with example("greeter", greeter, port := free_port()):
            refused = await last_result(reader, caller, "refused")
            assert "needs the permission greet" in refused["message"]
            ref = PermissionRef(caller.credentials.account_id, GREETING, "greet")
            await alpha_double.expect(greeter, ref, Grant(granted=True))
            greeted = await last_result(reader, caller, "ok")
            assert greeted == {"outcome": "ok", "message": "Hello, caller", "version": 1}
        async with example("greeter-v2", greeter, port):
            greeted = await last_result(reader, caller, "ok", version=2)
            assert greeted["message"] == "Good day, caller"
        counted = (await metrics.get("/metrics")).text
        assert 'caller_calls_total{outcome="ok"}' in counted
        assert 'caller_calls_total{outcome="refused"}' in counted


async def last_result(reader: Node, caller: Identity, outcome: str, **members: Any) -> dict[str, Any]:
    """Return what the caller reports, once it reports this outcome."""

    async def look() -> dict[str, Any] | None:
        profile = await load_profile(reader, caller.credentials.account_id)
        shown = await reader.find_unique_map(profile.group.id, "last-call")
        result = shown.get("result") if shown is not None else None
        fits = isinstance(result, dict) and result.items() >= {"outcome": outcome, **members}.items()
        return result if fits else None

    return await eventually(f"the outcome {outcome} with {members}", look, within=60)


@asynccontextmanager
async def example(name: str, identity: Identity, port: int) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a running example and a client of its HTTP port; stop it as Kubernetes does, with exit code 0."""
    variables = {**environment(identity, port), "RESIDE_INTERNAL_ENDPOINT": f"http://127.0.0.1:{port}"}
    process = await subprocess.create_subprocess_exec(
        sys.executable, "-m", "main", cwd=EXAMPLES / name, env=variables, stdout=subprocess.PIPE
    )
    try:
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http:

            async def ready() -> str:
                assert process.returncode is None
                try:
                    return str((await http.get("/readyz")).status_code)
                except httpx2.ConnectError as error:
                    return str(error)

            # A caller is ready before its greeter is, and reports failed calls.
            await eventually("readiness", ready, lambda seen: seen == "200", within=60)
            yield http
    finally:
        process.terminate()
        out, _ = await process.communicate()
    log = [json.loads(line) for line in out.splitlines()]
    assert process.returncode == 0, log
    assert identity.credentials.agent_secret not in out.decode()
