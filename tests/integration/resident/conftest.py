"""The stock and the resident engine, for tests that compare them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from integration.resident.sides import run_sides

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integration.resident.sides import Sides

    from reside.local import ClusterInfo


@pytest.fixture(scope="package")
def sides(cluster: ClusterInfo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """Yield the stock and the resident engine, for all files that compare them."""
    with run_sides(cluster, tmp_path_factory.mktemp("resident")) as made:
        yield made
