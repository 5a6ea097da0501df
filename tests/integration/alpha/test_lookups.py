"""Look-ups that list several values: each is a member, so a change writes one entry; look-ups of earlier releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.alpha_cluster import alpha_cluster

from reside.alpha import lookups

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.alpha_cluster import AlphaCluster, Servers

    from reside.alpha.data import AlphaData
    from reside.jazz import CoMap

pytestmark = pytest.mark.anyio

NAME = "replica.by-contract.7"


@pytest.fixture
async def cluster(servers: Servers) -> AsyncIterator[AlphaCluster]:
    async with alpha_cluster(servers, leading=False) as made:
        yield made


async def lookup_of(data: AlphaData) -> CoMap:
    found = await data.node.find_unique_map(data.public.id, NAME)
    assert found is not None
    return found


async def test_a_look_up_grows_by_one_entry_a_write(cluster: AlphaCluster) -> None:
    data = cluster.alpha.data
    await lookups.make_list(data, NAME)
    found = await lookup_of(data)
    for number in (5, 3, 4):
        before = found.transaction_count
        await lookups.add_target(data, NAME, f"co_z{number}", number)
        await lookups.add_target(data, NAME, f"co_z{number}", number)
        assert found.transaction_count == before + 1
        assert found.history(f"co_z{number}")[-1].value == number
    await lookups.remove_target(data, NAME, "co_z3")
    await lookups.remove_target(data, NAME, "co_z9")
    assert found.transaction_count == before + 2
    assert await lookups.find_all(data, NAME) == ["co_z4", "co_z5"]
    assert [await lookups.is_listed(data, NAME, f"co_z{number}") for number in (3, 4)] == [False, True]


async def test_a_look_up_of_an_earlier_release_is_read_and_converted_at_its_first_change(cluster: AlphaCluster) -> None:
    data = cluster.alpha.data
    found = await data.node.unique_map(data.public, NAME, {"targets": ["co_zB", "co_zA"]})
    assert await lookups.find_all(data, NAME) == ["co_zB", "co_zA"]
    assert await lookups.is_listed(data, NAME, "co_zA")
    await lookups.add_target(data, NAME, "co_zC", 8)
    assert await lookups.find_all(data, NAME) == ["co_zB", "co_zA", "co_zC"]
    await lookups.remove_target(data, NAME, "co_zB")
    assert await lookups.find_all(data, NAME) == ["co_zA", "co_zC"]
    assert found.get("targets") is None
