"""The fake Sentinel survives an outage of Jazz, as the real one does, and no other failure."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from support.fake_sentinel import Cluster, Orders

from reside.jazz import JazzTimeout
from reside.model.constants import SENTINEL_CONTRACT

if TYPE_CHECKING:
    from reside.replica import Context

pytestmark = pytest.mark.anyio


async def test_it_goes_on_after_an_outage_of_jazz() -> None:
    errors = [JazzTimeout("there is no connection"), ArithmeticError("a bug")]

    async def load_map(_: str) -> Any:
        raise errors.pop(0)

    data: dict[str, dict[str, str]] = {SENTINEL_CONTRACT: defaultdict(str)}
    context = cast("Context", SimpleNamespace(node=SimpleNamespace(load_map=load_map), data=data))
    with pytest.raises(ArithmeticError):
        await Cluster(context, Orders()).run()
    assert not errors
