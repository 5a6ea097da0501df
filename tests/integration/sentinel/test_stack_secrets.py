"""Secrets of stacks: references to values in Jazz are filled in, kept, and never shown."""

import asyncio
import json

import pytest
from integration.sentinel.setup import Setup
from integration.sentinel.stack_objects import live, secret, secret_value
from integration.sentinel.webhooks import silent_webhook
from support.eventually import eventually
from support.sentinel import config_map, kubectl

from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio


async def test_secret_references_are_filled_in_and_survive_the_values_deletion(
    cluster: ClusterInfo, setup: Setup
) -> None:
    """The report in Jazz contains no value, and a value that another account wrote is ignored."""
    async with setup.running():
        alpha = await setup.alpha()
        value = alpha.group.create_map({"value": "very-secret-value"})
        report = await alpha.shown(await alpha.declare("demo", secret("web", value.id)))
        assert "very-secret-value" not in json.dumps(report)
        assert set(report["Secret/web"]["live"]["data"].values()) == {"***"}
        value.delete("value")
        await alpha.node.flush()
        await alpha.applied(await alpha.declare("demo", secret("web", value.id), config_map("a", x="1")))
        assert await secret_value(cluster, setup, "web") == "very-secret-value"
        assert await secret_value(cluster, setup, "web", "accountId") == "co_zaccount"
        value.set("value", "")
        await alpha.node.flush()
        await alpha.applied(await alpha.declare("demo", secret("web", value.id), config_map("a", x="2")))
        assert await secret_value(cluster, setup, "web") == ""

        async with setup.other("Secret") as thief:
            loot = secret("loot", value.id, "thief")
            del loot["stringData"]
            await thief.declare("thief", loot)
            refused = await thief.report("thief", lambda now: now.get("error"))
            assert "no value" in refused["error"]
    files = [path for path in setup.settings.state_dir.rglob("*") if path.is_file()]
    assert not [path for path in files if b"very-secret-value" in path.read_bytes()]


async def test_removing_a_stack_keeps_the_secret_values_of_one_that_is_just_being_applied(
    cluster: ClusterInfo, setup: Setup
) -> None:
    """A webhook holds up the apply. Afterwards its value is in no map any more, and its Secret is deleted by hand."""
    async with setup.running():
        alpha = await setup.alpha()
        old, new = (alpha.group.create_map({"value": text}) for text in ("old-value", "new-value"))
        await alpha.applied(await alpha.declare("old", secret("old", old.id, "old")))
        async with silent_webhook(cluster, setup.namespace) as asked:
            stack = await alpha.declare("new", secret("new", new.id, "new"), config_map("slow", "new", x="1"))
            async with asyncio.timeout(60):
                await asked.wait()
            alpha.desired.delete("old")
            await eventually("the end of the other stack", lambda: "old" not in alpha.reports)
        await alpha.applied(stack)
        new.delete("value")
        await alpha.node.flush()
        before = await live(cluster, setup, "Secret/new")
        assert before is not None
        await asyncio.to_thread(kubectl, cluster, "-n", setup.namespace, "delete", "secret", "new")

        async def restored() -> bool:
            found = await live(cluster, setup, "Secret/new")
            return found is not None and found["metadata"]["uid"] != before["metadata"]["uid"]

        await eventually("another Secret", restored)
        assert await secret_value(cluster, setup, "new") == "new-value"
