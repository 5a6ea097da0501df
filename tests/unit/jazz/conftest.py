"""What the tests of the Jazz client's wire share: a node that plays the server, and one that writes."""

import pytest
from support.jazz_wire import Loose, registered


@pytest.fixture
async def hub() -> Loose:
    """A node that plays the server: it answers loads and acknowledges content."""
    return Loose()


@pytest.fixture
async def writer(hub: Loose) -> Loose:
    """A registered node."""
    return await registered(hub, "writer")
