"""Keys that JavaScript clients can't read are refused by the writer, before anything is written."""

from __future__ import annotations

import pytest
from support.jazz_controlled_nodes import DetachedNode, exchange_during

from reside.jazz import CoMap, InvalidArgument
from reside.jazz.typed import CoMapModel, RecordOf, SchemaError, field
from reside.jazz.values.comap import RESERVED_KEYS

pytestmark = pytest.mark.anyio


@pytest.fixture
async def value() -> CoMap:
    """Return a map of a registered node."""
    hub, node = DetachedNode(), DetachedNode()
    await exchange_during(hub, node, node.register("someone"))
    return node.create_group().create_map({"x": 1})


@pytest.mark.parametrize("key", sorted(RESERVED_KEYS))
async def test_a_reserved_key_is_refused_and_nothing_is_written(key: str, value: CoMap) -> None:
    written = len(value._core.transactions)
    for write in (
        lambda: value.set(key, 1),
        lambda: value.update({"y": 1, key: 1}),
        lambda: value.update({"y": 1}, unset=[key]),
        lambda: value.delete(key),
    ):
        with pytest.raises(InvalidArgument, match=r"reserved.*rename"):
            write()
    assert len(value._core.transactions) == written
    assert value.as_dict() == {"x": 1}


async def test_a_map_is_not_created_with_a_reserved_key(value: CoMap) -> None:
    store = value._host.store
    before = set(store.cores)
    with pytest.raises(InvalidArgument, match="reserved"):
        value.group.create_map({"constructor": 1})
    assert set(store.cores) == before


async def test_a_record_refuses_a_reserved_key_before_anything_is_created(value: CoMap) -> None:
    with pytest.raises(InvalidArgument, match="reserved"):
        RecordOf[str]({"toString": "x"})
    record = RecordOf[str]({"x": "y"}).create(value.group)
    with pytest.raises(InvalidArgument, match="reserved"):
        record["__proto__"] = "x"


def test_a_model_with_a_reserved_key_is_a_schema_error() -> None:
    class Broken(CoMapModel):
        name: str = field(key="constructor")

    with pytest.raises(SchemaError, match=r"Broken\.name.*reserved"):
        Broken(name="x")
