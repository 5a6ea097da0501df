"""Test the caller in process, with a greeter of the test: `python -m pytest` in this folder (docs/testing.md)."""

from pathlib import Path

import pytest
from main import caller

from reside.jazz import CoMap
from reside.replica import Call, Replica, load_contract
from reside.testing import cluster

pytestmark = pytest.mark.anyio

GREETING = load_contract(Path(__file__).parents[2] / "contracts" / "greeting.v1" / "contract.yaml")
greeter = Replica(GREETING)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@greeter.method(GREETING.identity, "greet")
async def greet(call: Call) -> dict[str, str]:
    call.require("greet")
    return {"message": f"Good evening, {call.body['name']}"}


async def test_the_caller_reports_refusals_and_greetings() -> None:
    async with cluster() as test:
        greeting, calling = await test.add(greeter, "greeter"), await test.add(caller, "caller")
        await test.connect(calling, "greeting", greeting)
        async with greeting.running(), calling.running() as context:
            published = await context.node.unique_map(context.public, "last-call")
            assert "needs the permission greet" in (await reported(published, "refused"))["message"]
            await test.grant(calling, greeting, "greet")
            assert (await reported(published, "ok"))["message"] == "Good evening, caller"


async def reported(published: CoMap, outcome: str) -> dict[str, str]:
    """Return what the caller publishes, once it has this outcome."""
    async with published.watch() as changes:
        async for _ in changes:
            result = published.get("result")
            if isinstance(result, dict) and result["outcome"] == outcome:
                return result
    raise AssertionError("the caller has stopped")
