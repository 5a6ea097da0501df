"""A node that acts as the server, and one that writes."""

import pytest
from support.jazz_controlled_nodes import DetachedNode, registered


@pytest.fixture
async def hub() -> DetachedNode:
    """Return a node that acts as the server: it responds to loads and acknowledges content."""
    return DetachedNode()


@pytest.fixture
async def writer(hub: DetachedNode) -> DetachedNode:
    """Return a registered node."""
    return await registered(hub, "writer")
