"""No declaration stops the others: hostile ones are refused or put off, in a process that goes on."""

import asyncio
import json
import time
from typing import Any

import pytest
from integration.sentinel.setup import ALL, Setup
from support.declarer import Declarer
from support.eventually import eventually
from support.poison import poisoned
from support.reports import report
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
        "mixed": members("mixed", {**config_map("mixed"), "data": {"x": [None, "a"]}}),
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
        refused = ("half", "deep", "large", "many", "huge-number", "mixed", "teardown", "entry-0", "entry-2", "secret")
        for name in refused:
            assert (await alpha.report(name, lambda now: now.get("error")))["error"]
        preview = await alpha.ask("good", "good", config_map("good", "good", x="2"))
        assert (preview["error"], preview["violations"]) == (None, [])
        assert [change["action"] for change in preview["changes"]] == ["update"]
        assert await alpha.applied(await alpha.declare("zz", config_map("zz", "zz", x="1")))
        del sentinel
    async with asyncio.timeout(120), setup.running():
        assert await alpha.applied(await alpha.declare("good", config_map("good", "good", x="3")))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("count", [150, 10_000])
async def test_generated_declarations_delay_no_good_ones(setup: Setup, count: int) -> None:
    """Ten good stacks are applied among those of another account, changed, and applied after a restart."""
    async with setup.running(), setup.other(*ALL) as other:
        alpha = await setup.alpha()
        documents = poisoned(other.node.account_id, count)
        names = list(documents)
        for begin in range(0, len(names), 500):
            other.desired.update(
                {name: other.group.create_map(documents[name]).id for name in names[begin : begin + 500]}
            )
            await other.node.flush()
        for value, when in (("1", "while all are read for the first time"), ("2", "while they are tried again")):
            seconds = [await _until_applied(alpha, f"good-{number}", value) for number in range(10)]
            report(
                f"{count} generated declarations: a good one takes {min(seconds):.2f} to {max(seconds):.2f} s {when}"
            )

        async def refused() -> int:
            return len([name for name in names if await _is_refused(other, name)])

        found = await eventually("more refusals", refused, lambda number: number > count / 4, within=1800)
        report(f"{found} of them are reported with an error")
    async with setup.running():
        await _until_applied(alpha, "good-0", "3")


async def _until_applied(alpha: Declarer, name: str, value: str) -> float:
    """Declare a good stack, and return the seconds until it is applied."""
    began = time.monotonic()
    stack = await alpha.declare(name, config_map(name, name, x=value))
    done = await alpha.report(name, lambda now: now.get("revision") == stack.revision, seconds=60)
    assert done["error"] is None
    return time.monotonic() - began


async def _is_refused(declarer: Declarer, name: str) -> bool:
    found = declarer.reports.get(name)
    return isinstance(found, str) and bool((await declarer.node.load_map(found)).get("error"))
