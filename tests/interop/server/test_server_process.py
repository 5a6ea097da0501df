"""The sync server of images/jazz as a process: health, log, graceful stop, bad settings."""

import json
import subprocess
from pathlib import Path

import httpx2
import pytest
from support.jazz_nodes import Nodes, content
from support.jazz_server import jazz_server, node_binary

pytestmark = pytest.mark.anyio


def test_it_reports_its_health_and_logs_json(tmp_path: Path) -> None:
    with jazz_server(tmp_path) as server:
        base = f"http://127.0.0.1:{server.port}"
        assert httpx2.get(f"{base}/healthz", trust_env=False).status_code == 200
        assert httpx2.get(f"{base}/other", trust_env=False).status_code == 404
        server.stop()
        lines = [json.loads(line) for line in server.log.splitlines()]
    assert [line["message"] for line in lines] == ["listening", "stopping", "stopped"]
    assert all(line["level"] == "info" for line in lines)
    assert lines[0]["host"] == "127.0.0.1"


async def test_a_graceful_stop_keeps_everything_while_clients_are_connected(tmp_path: Path) -> None:
    with jazz_server(tmp_path) as server:
        async with Nodes(server.url) as nodes:
            writer = await nodes("writer")
            group = writer.create_group()
            await group.add_member("everyone", "reader")
            value = group.create_map({"x": 1})
            await writer.flush()
            server.stop()
            await writer.close()
            server.start()
            reader = await nodes("reader")
            assert content(await reader.load_map(value.id)) == {"x": 1}


@pytest.mark.parametrize("port", ["none", "70000", "-1"])
def test_an_invalid_port_is_reported(port: str, tmp_path: Path) -> None:
    with jazz_server(tmp_path) as server:
        finished = subprocess.run(
            [node_binary(), "server.mjs"], cwd=server.folder, env={"PORT": port}, capture_output=True, check=False
        )
    assert finished.returncode == 2
    assert json.loads(finished.stdout)["message"] == "PORT is not a port number"


def test_a_port_in_use_is_reported(tmp_path: Path) -> None:
    with jazz_server(tmp_path) as server:
        environment = {"PORT": str(server.port), "DB": ":memory:"}
        finished = subprocess.run(
            [node_binary(), "server.mjs"], cwd=server.folder, env=environment, capture_output=True, check=False
        )
    assert finished.returncode == 1
    assert json.loads(finished.stdout)["message"] == "can't listen"
