"""One sync server of each mode for all tests of a worker, and a JavaScript client for each test that needs one.

The mode is that of the variable `RESIDE_JAZZ_MODE`, or open. Tests marked with `needs_open_server` have an open one.
"""

from collections.abc import AsyncIterator, Iterator

import pytest
from interop.javascript import JavaScript, javascript
from support.jazz_nodes import Nodes
from support.jazz_server import MODE, JazzServer, jazz_server


@pytest.fixture(scope="package")
def open_jazz() -> Iterator[JazzServer]:
    """Yield a running sync server in open mode."""
    with jazz_server(MODE="open") as server:
        yield server


@pytest.fixture(scope="package")
def default_jazz() -> Iterator[JazzServer]:
    """Yield a running sync server in the mode of the tests."""
    with jazz_server() as server:
        yield server


@pytest.fixture(scope="package")
def jazz(request: pytest.FixtureRequest) -> JazzServer:
    """Return a running sync server."""
    is_open = getattr(request, "param", MODE) == "open"
    server: JazzServer = request.getfixturevalue("open_jazz" if is_open else "default_jazz")
    return server


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
