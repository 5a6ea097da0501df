"""Test the greeter in process: `python -m pytest` in this folder (docs/testing.md)."""

import pytest
from greeting import GreetBody, GreetReturns
from main import greeter

from reside.model.errors import NotAllowed
from reside.testing import cluster

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_only_callers_with_the_permission_are_greeted() -> None:
    async with cluster() as test:
        instance, ada = await test.add(greeter, "greeter"), await test.user()
        async with instance.running():
            with pytest.raises(NotAllowed, match="needs the permission greet"):
                await ada.call(instance, "greet", {"name": "Ada"})
            await test.grant(ada, instance, "greet")
            assert await ada.call(instance, "greet", {"name": "Ada"}) == {"message": "Hello, Ada", "version": 1}
            typed = await ada.call(instance, "greet", GreetBody(), returns=GreetReturns)
            assert typed.message == "Hello, stranger"
            await test.revoke(ada, instance, "greet")
            with pytest.raises(NotAllowed):
                await ada.call(instance, "greet", {"name": "Ada"})
