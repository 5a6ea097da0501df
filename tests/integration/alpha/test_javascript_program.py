"""The example in JavaScript, on the official packages, loads an image and reads Alpha's data."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.jazz_server import interop_packages, node_binary

if TYPE_CHECKING:
    from support.alpha_cluster import AlphaCluster, Client, Servers

pytestmark = pytest.mark.anyio

PROGRAM = Path(__file__).parents[3] / "examples" / "javascript" / "load.mjs"


async def run(folder: Path, cluster: AlphaCluster, admin: Client, image: str) -> tuple[list[dict[str, Any]], str]:
    """Run the program with the super admin's account; return the lines of its output, and its errors."""
    shutil.copy(PROGRAM, folder)
    if not (folder / "node_modules").exists():
        (folder / "node_modules").symlink_to(interop_packages() / "node_modules")
    settings = {
        "sync": cluster.servers.jazz.url,
        "account": admin.credentials.account_id,
        "secret": admin.credentials.agent_secret,
        "alpha": cluster.credentials.account_id,
        "image": image,
    }
    process = await asyncio.create_subprocess_exec(
        node_binary(),
        PROGRAM.name,
        json.dumps(settings),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, errors = await process.communicate()
    return [json.loads(line) for line in out.decode().splitlines()], errors.decode()


async def test_a_javascript_program_loads_an_image_and_lists_the_replicas(
    cluster: AlphaCluster, servers: Servers, admin: Client, tmp_path: Path
) -> None:
    info = {"name": "greeter", "class": "long-running", "exclusive": True, "scalable": True}
    await servers.push("examples/greeter:v1", type="replica", info=info)
    image = "registry.reside.internal/examples/greeter:v1"
    lines, errors = await run(tmp_path, cluster, admin, image)
    assert lines[:2] == [{"request": 1, "status": "requires-approval"}, {"request": 1, "version": 1}], errors
    replica = await cluster.replica("greeter")
    assert lines[2:] == [{"replicas": [{"id": replica.id, "name": "greeter"}]}]
    await cluster.has_status("greeter", "running")
    refused, errors = await run(tmp_path, cluster, admin, "registry.reside.internal/examples/none:v1")
    assert refused[0]["status"] == "invalid"
    assert "examples/none:v1" in refused[0]["error"], errors
