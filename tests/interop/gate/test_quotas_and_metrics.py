"""Quotas of a connection, the metrics of the server, and its settings."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest
from interop.gate.conftest import metrics
from interop.strangers.stranger import set_key, stranger, trusting
from support.jazz_nodes import Nodes, content
from support.jazz_server import jazz_server, node_binary
from websockets.exceptions import ConnectionClosed

from reside.jazz import now_ms
from reside.jazz.wire.header import group_header

if TYPE_CHECKING:
    from pathlib import Path

    from interop.strangers.stranger import Stranger

pytestmark = pytest.mark.anyio

ABSENT = "co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp"


async def exceed(who: Stranger, kind: str) -> None:
    """Send loads or create groups until the server closes the connection."""
    while True:
        if kind == "messages":
            await who.send({"action": "load", "id": ABSENT, "header": False, "sessions": {}})
            await who.reported(ABSENT)
        else:
            header = group_header(who.author, None, now_ms())
            await who.write(header.co_id, [trusting([set_key(who.author, "admin")])], header=dict(header.raw))
            await who.reported(header.co_id)


@pytest.mark.parametrize("mode", ["open", "members"])
@pytest.mark.parametrize(("kind", "limit"), [("messages", 20), ("bytes", 20_000), ("values", 20), ("sessions", 20)])
async def test_a_connection_over_its_quota_is_closed(mode: str, kind: str, limit: int) -> None:
    settings = {"MODE": mode, f"QUOTA_{kind.upper()}": str(limit)}
    with jazz_server(**settings) as server:
        async with stranger(server.url) as who, stranger(server.url) as other:
            with pytest.raises(ConnectionClosed) as closed:
                await exceed(who, kind)
            assert await other.sessions(ABSENT) == {}, "the quota is that of a connection"
        ended = closed.value.rcvd
        assert ended is not None
        assert (ended.code, ended.reason) == (1008, f"over the quota of {kind}")
        assert metrics(server)[f'reside_jazz_refusals_total{{reason="over the quota of {kind}"}}'] == 1
        assert f"over the quota of {kind}" in server.log


async def test_a_quota_of_zero_is_none() -> None:
    with jazz_server(QUOTA_MESSAGES="0", QUOTA_BYTES="0", QUOTA_VALUES="0", QUOTA_SESSIONS="0") as server:
        async with Nodes(server.url) as nodes:
            value = (await nodes("one")).create_group().create_map({"x": 1})
            await value.uploaded()


async def test_the_metrics_count_what_clients_do() -> None:
    with jazz_server(MODE="members") as server:
        assert metrics(server)["reside_jazz_connections"] == 0
        async with Nodes(server.url) as nodes:
            owner = await nodes("owner")
            group = owner.create_group()
            await group.add_member("everyone", "reader")
            value = group.create_map({"x": 1})
            await owner.flush()
            async with stranger(server.url) as who:
                for _ in range(200):
                    await who.write(value.id, [trusting([set_key("x", 2)])])
                    await who.reported(value.id)
                seen = metrics(server)
            assert content(value) == {"x": 1}
        lines = [json.loads(line) for line in server.log.splitlines()]
    assert seen["reside_jazz_connections"] == seen["reside_jazz_connections_total"] == 2
    assert seen["reside_jazz_messages_total"] > 200
    assert seen["reside_jazz_bytes_total"] > 200 * 200
    reason = "the author has no role by which it could count"
    assert seen[f'reside_jazz_refusals_total{{reason="{reason}"}}'] == 200
    assert 1 <= sum(line.get("reason") == reason for line in lines) <= 60, "a flood of refusals floods no log"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("MODE", "closed", "MODE is not one of open, members"),
        ("PROOF", "yes", "PROOF is not one of none, required"),
        ("PROOF", "required", "PROOF=required needs PROOF_HOSTS"),
        ("QUOTA_MESSAGES", "many", "QUOTA_MESSAGES is not a number"),
        ("QUOTA_BYTES", "-1", "QUOTA_BYTES is not a number"),
        ("HOLD_S", "", "HOLD_S is not a number of seconds"),
        ("ERASE_S", "soon", "ERASE_S is not a number of seconds"),
    ],
)
def test_an_invalid_setting_is_reported(name: str, value: str, message: str, tmp_path: Path) -> None:
    with jazz_server(tmp_path) as server:
        finished = subprocess.run(
            [node_binary(), "server.mjs"], cwd=server.folder, env={name: value}, capture_output=True, check=False
        )
    assert finished.returncode == 2
    assert json.loads(finished.stdout)["message"].startswith(message)
