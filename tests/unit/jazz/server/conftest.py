"""A hub, and connections to it."""

import pytest
from unit.jazz.server.lines import Attached, Clock, Line

from reside.jazz.server.hub import Hub
from reside.jazz.server.values import Values


@pytest.fixture
def clock() -> Clock:
    """Return the hub's clock."""
    return Clock()


@pytest.fixture
def server(clock: Clock) -> Hub:
    """Return the state machine of a server that keeps its values in memory."""
    return Hub(Values(), clock=clock)


@pytest.fixture
def line(server: Hub) -> Line:
    """Return a connection of a client."""
    return Line(server)


@pytest.fixture
def other(server: Hub) -> Line:
    """Return a connection of another client."""
    return Line(server)


@pytest.fixture
def attached(server: Hub) -> Attached:
    """Return a factory of nodes that are connected to the server."""
    return Attached(server)
