"""One control plane for the integration tests of all workers; each folder adds its own fixtures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.clusters import shared_control_plane

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reside.local import ClusterInfo


@pytest.fixture(scope="package")
def cluster() -> Iterator[ClusterInfo]:
    """Yield the control plane that all workers share; each test has a namespace of its own."""
    with shared_control_plane() as info:
        yield info
