"""What is live of an object is shown to those who may read its kind; an upgrade moves what everybody could read."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from support.declarer import declarer
from support.eventually import eventually
from support.sentinel import config_map, metadata, workload

from reside.cli.describing import object_rows, read_report
from reside.jazz import Node, ValueDeleted
from reside.model.constants import SENTINEL_CONTRACT
from reside.model.errors import NotAllowed
from reside.model.kinds import BY_KIND
from reside.model.permissions import Grant, PermissionRef
from reside.model.sentinel_data import REPORTS, live_group, live_map

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from integration.sentinel.setup import Setup

pytestmark = pytest.mark.anyio
SECRET_WORDS = "only who may read deployments knows this"


@pytest.fixture
async def reader(setup: Setup) -> AsyncIterator[Node]:
    """Yield a node of an account that may read ConfigMaps, once the Sentinel has granted that."""
    credentials = await setup.alpha_double.account("reader")
    async with Node(setup.settings.sync_server_url, credentials) as node:
        await node.login()
        yield node


async def grant(setup: Setup, reader: Node, kind: str, *, granted: bool = True) -> None:
    ref = PermissionRef(str(reader.account_id), SENTINEL_CONTRACT, BY_KIND[kind].read)
    await setup.alpha_double.expect(setup.identity, ref, Grant(granted=granted))
    await setup.alpha_double.until_current(setup.identity, ref, Grant(granted=granted))


def deployment(words: str) -> dict[str, Any]:
    found = workload("Deployment", "web", replicas=0)
    found["metadata"] = metadata("web", note=words)
    return found


async def read(setup: Setup, reader: Node) -> dict[str, Any]:
    """Return all that an account can read of the report, by `report` and kind.

    A map that was just replaced, or has not arrived at the reader yet, is empty.
    """
    own = await declarer(reader, setup.identity.credentials.account_id)
    report = await reader.load_map(str(own.reports["demo"]))
    found = {"report": report.as_dict()}
    for kind in ("ConfigMap", "Deployment"):
        named = report.get(live_map(kind))
        with suppress(ValueDeleted):
            found[kind] = (await reader.load_map(named)).as_dict() if isinstance(named, str) else {}
        found.setdefault(kind, {})
    return found


async def is_deleted(node: Node, co_id: str) -> bool:
    try:
        return (await node.load_map(co_id)).deleted
    except ValueDeleted:
        return True


async def test_a_reader_of_one_kind_reads_nothing_of_another(setup: Setup, reader: Node) -> None:
    """It sees whether the other objects are applied, as it did before; what is live follows its permissions."""
    async with setup.running():
        alpha = await setup.alpha()
        sentinel = setup.identity.credentials.account_id
        with pytest.raises(NotAllowed, match="deployment:read:all"):
            await read_report(reader, sentinel, "demo")
        await grant(setup, reader, "ConfigMap")
        assert (await read_report(reader, sentinel, "demo")).objects == {}
        shown = await alpha.shown(await alpha.declare("demo", config_map("a", x="1"), deployment(SECRET_WORDS)))
        assert SECRET_WORDS in json.dumps(shown["Deployment/web"]["live"]), "Alpha may read it"

        async def states() -> dict[str, str]:
            return {row["object"]: row["state"] for row in object_rows(await read_report(reader, sentinel, "demo"))}

        current = {"ConfigMap/a": "current", "Deployment/web": "current"}
        await eventually("the states", states, lambda now: now == current)
        found = await eventually(
            "what the reader may read",
            lambda: read(setup, reader),
            lambda now: now["report"]["Deployment/web"]["status"] == "updated" and "ConfigMap/a" in now["ConfigMap"],
        )
        assert found["ConfigMap"]["ConfigMap/a"]["kind"] == "ConfigMap"
        assert SECRET_WORDS not in json.dumps(found)

        await grant(setup, reader, "Deployment")
        await eventually(
            "what it may read now", lambda: read(setup, reader), lambda now: SECRET_WORDS in json.dumps(now)
        )
        await grant(setup, reader, "Deployment", granted=False)
        await alpha.applied(await alpha.declare("demo", config_map("a", x="1"), deployment(f"{SECRET_WORDS}, changed")))
        assert "changed" not in json.dumps(await read(setup, reader))


async def test_an_upgrade_hides_what_an_earlier_release_showed_to_all_readers(setup: Setup, reader: Node) -> None:
    """Its reports are replaced, and accounts with earlier grants get the roles that they lack."""
    async with setup.running():
        alpha = await setup.alpha()
        await grant(setup, reader, "ConfigMap")
        await alpha.applied(await alpha.declare("demo", config_map("a", x="1"), deployment(SECRET_WORDS)))
    async with Node(setup.settings.sync_server_url, setup.identity.credentials) as node:
        account = await node.login()
        root = await node.load_map(account.profile["contracts"][SENTINEL_CONTRACT])
        reports = await node.load_map(root[REPORTS])
        before = (await node.load_map(reports["demo"])).as_dict()
        live = {"kind": "Deployment", "metadata": {"annotations": {"note": SECRET_WORDS}}}
        earlier = {key: value | {"live": live} for key, value in before.items() if "/" in key}
        shown = reports.group.create_map({"revision": before["revision"], "error": None} | earlier)
        reports.set("demo", shown.id)
        for kind in BY_KIND:
            root.delete(live_group(kind))
        await node.flush()
    async with setup.running():
        await alpha.report(
            "demo", lambda now: "live" in now.get("ConfigMap/a", {}) and alpha.reports["demo"] != shown.id
        )

        found = await eventually(
            "what the reader may read", lambda: read(setup, reader), lambda now: "ConfigMap/a" in now["ConfigMap"]
        )
        assert SECRET_WORDS not in json.dumps(found)
        await eventually("the end of what all could read", lambda: is_deleted(reader, shown.id), bool)
