"""Loading by the Alpha in the cluster has a deadline."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from reside.model.errors import NotReady
from reside.seed.upgrade import load_within

pytestmark = pytest.mark.anyio
IMAGE = "registry.example.org/alpha@sha256:" + "0" * 64


class Stuck:
    """A Jazz node that never gets any data."""

    async def find_unique_map(self, *_name: Any) -> None:
        """Wait until cancelled."""
        await anyio.sleep_forever()


async def test_a_load_without_progress_is_an_error_that_names_the_image() -> None:
    alpha = SimpleNamespace(data=SimpleNamespace(node=Stuck(), public=SimpleNamespace(id="public")))
    with pytest.raises(NotReady, match=f"did not load {IMAGE} within 0 s"):
        await load_within(alpha, IMAGE, None, 0.05)
