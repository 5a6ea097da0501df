"""One sync server for all tests of a worker, and a JavaScript client for each test that needs one."""

from collections.abc import AsyncIterator, Iterator

import pytest
from interop.javascript import JavaScript, javascript
from support.jazz_nodes import Nodes
from support.jazz_server import JazzServer, jazz_server


@pytest.fixture(scope="session")
def jazz() -> Iterator[JazzServer]:
    """Yield a running sync server."""
    with jazz_server() as server:
        yield server


@pytest.fixture
async def js() -> AsyncIterator[JavaScript]:
    """Yield a fresh JavaScript client."""
    async with javascript() as driver:
        yield driver


@pytest.fixture
async def nodes(jazz: JazzServer) -> AsyncIterator[Nodes]:
    """Yield a factory of Python nodes on the server."""
    async with Nodes(jazz.url) as made:
        yield made


@pytest.fixture
async def tools() -> AsyncIterator[JavaScript]:
    """Yield a fresh jazz-tools client."""
    async with javascript("tools.mjs") as driver:
        yield driver
