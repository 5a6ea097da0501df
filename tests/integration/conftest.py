"""One control plane for the integration tests of all workers; each folder adds its own fixtures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.clusters import shared_control_plane
from support.typescript import TypeScript

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reside.local import ClusterInfo


@pytest.fixture(scope="package")
def cluster() -> Iterator[ClusterInfo]:
    """Yield the control plane that all workers share; each test has a namespace of its own."""
    with shared_control_plane() as info:
        yield info


@pytest.fixture(scope="session")
def typescript(tmp_path_factory: pytest.TempPathFactory) -> TypeScript:
    """Pack the package for TypeScript, and install it for the programs of examples and tests."""
    made = TypeScript(tmp_path_factory.mktemp("typescript"))
    made.install()
    return made
