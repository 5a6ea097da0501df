"""No declaration stops the others: hostile ones are refused or put off, in a process that goes on."""

import asyncio
import json
from typing import Any

import pytest
from integration.sentinel.setup import Setup
from support.sentinel import config_map, metadata

from reside.model.constants import SECRET_REFERENCES_ANNOTATION, TEARDOWN_MARKER

pytestmark = pytest.mark.anyio
HALF = "\ud800"


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def hostile(account: str) -> dict[str, dict[str, Any]]:
    """Return members of maps that are declared as stacks, by the stack's name."""

    def members(name: str, *objects: Any) -> dict[str, Any]:
        return {"name": name, "owner": account, "objects": list(objects)}

    marker = TEARDOWN_MARKER.partition("/")[2]
    return {
        "half": members("half", config_map("half", x=HALF)),
        "half-key": members("half-key", {**config_map("half-key"), "data": {HALF: "x"}}),
        "half-owner": members("half-owner", config_map("half-owner")) | {"owner": HALF},
        "deep": members("deep", {**config_map("deep"), "data": nested(980)}),
        "deep-name": members("deep-name") | {"name": nested(980)},
        "large": members("large", config_map("large", x="x" * 1024 * 1024)),
        "many": members("many", *[config_map(f"many-{number}") for number in range(501)]),
        "huge-number": members("huge-number", {**config_map("huge-number"), "data": {"x": 10**30}}),
        "teardown": members("teardown", config_map(marker)),
        HALF: members(HALF, config_map("name")),
    }


async def test_no_declaration_stops_the_others(setup: Setup) -> None:
    """After each restart, too, stacks before and behind hostile ones are applied, and previews are made."""
    async with setup.running() as sentinel:
        alpha = await setup.alpha()
        for name, members in hostile(alpha.node.account_id).items():
            alpha.desired.set(name, alpha.group.create_map(members).id)
            alpha.previews.set(f"of {name}", alpha.group.create_map(members).id)
        for number, value in enumerate((nested(980), HALF, 7, None, {"a": HALF})):
            alpha.desired.set(f"entry-{number}", value)
            alpha.previews.set(f"entry-{number}", value)
        references = {SECRET_REFERENCES_ANNOTATION: json.dumps({"v": alpha.group.create_map({"value": HALF}).id})}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata("s", "secret", **references)}
        await alpha.declare("secret", secret)
        assert (await alpha.applied(await alpha.declare("good", config_map("good", "good", x="1"))))["error"] is None
        for name in ("half", "deep", "large", "many", "huge-number", "teardown", "entry-0", "entry-2", "secret"):
            assert (await alpha.report(name, lambda now: now.get("error")))["error"]
        preview = await alpha.ask("good", "good", config_map("good", "good", x="2"))
        assert (preview["error"], preview["violations"]) == (None, [])
        assert [change["action"] for change in preview["changes"]] == ["update"]
        assert await alpha.applied(await alpha.declare("zz", config_map("zz", "zz", x="1")))
        del sentinel
    async with asyncio.timeout(120), setup.running():
        assert await alpha.applied(await alpha.declare("good", config_map("good", "good", x="3")))
