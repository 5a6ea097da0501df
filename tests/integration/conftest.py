"""A control plane for all integration tests of a worker; each folder adds its own fixtures."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from support.clusters import control_plane

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reside.local import ClusterInfo


@pytest.fixture(scope="package")
def cluster() -> Iterator[ClusterInfo]:
    """Yield a control plane for all files that a worker runs; each test has a namespace of its own."""
    with control_plane(f"integration-{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}") as info:
        yield info
