"""One sync server of each mode, and one driver of each JavaScript client, for all tests of a worker.

The mode is that of the variable `RESIDE_JAZZ_MODE`, or open. Tests marked with `needs_open_server` have an open one.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import closing

import pytest
from interop.javascript import Driver, JavaScript
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


@pytest.fixture(scope="package")
def js_driver() -> Iterator[Driver]:
    """Yield the driver of cojson that the tests use one after the other."""
    with closing(Driver("driver.mjs")) as driver:
        yield driver


@pytest.fixture(scope="package")
def tools_driver() -> Iterator[Driver]:
    """Yield the driver of jazz-tools that the tests use one after the other."""
    with closing(Driver("tools.mjs")) as driver:
        yield driver


@pytest.fixture
async def js(js_driver: Driver) -> AsyncIterator[JavaScript]:
    """Yield a JavaScript client without actors."""
    async with js_driver.lent() as driver:
        yield driver


@pytest.fixture
async def nodes(jazz: JazzServer) -> AsyncIterator[Nodes]:
    """Yield a factory of Python nodes on the server."""
    async with Nodes(jazz.url) as made:
        yield made


@pytest.fixture
async def tools(tools_driver: Driver) -> AsyncIterator[JavaScript]:
    """Yield a jazz-tools client without actors."""
    async with tools_driver.lent() as driver:
        yield driver
