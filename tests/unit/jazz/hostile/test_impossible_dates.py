"""Dates that no correct clock returns affect only what their author writes."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from support.jazz_controlled_nodes import DetachedNode, exchange, exchange_during, registered

from reside.jazz.inspect import inspect_value
from reside.jazz.typed import FeedOf
from reside.jazz.typed.codecs import DateCodec, Misfit
from reside.jazz.wire.dates import date_of
from reside.jazz.wire.session import MAX_TIME

pytestmark = pytest.mark.anyio


async def test_writes_beyond_the_last_possible_date_are_accepted_by_all() -> None:
    hub = DetachedNode()
    owner = await registered(hub, "owner")
    group = owner.create_group()
    await group.add_member("everyone", "reader")
    value = group.create_map({"x": 0})
    last = [{"op": "set", "key": "last", "value": True}]
    owner.transact(value.id, last, private=True, made_at=MAX_TIME)
    value.set("x", 1)
    value.set("x", 2)
    await exchange(hub, owner)
    reader = DetachedNode()
    found = await exchange_during(hub, reader, reader.load_map(value.id))
    assert found.as_dict() == value.as_dict() == {"x": 2, "last": True}


@pytest.mark.parametrize("ms", [0, -1, 1_795_000_000_123, 253_402_300_799_999, -62_135_596_800_000])
def test_a_time_is_the_date_to_the_millisecond(ms: int) -> None:
    date = date_of(ms)
    assert (date - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() == ms / 1000


async def test_a_value_with_an_impossible_date_can_be_read_and_inspected() -> None:
    owner = await registered(DetachedNode(), "owner")
    feed = owner.create_group().create_feed()
    feed.push("now")
    owner.transact(feed.id, ["at the end of time"], private=True, made_at=MAX_TIME)
    items = (await FeedOf[str].load(owner, feed.id)).items()
    assert [(item.value, item.at.year) for item in items][1:] == [("at the end of time", 9999)]
    report = await inspect_value(owner, feed.id)
    assert report.transactions[-1].made_at == "9999-12-31T23:59:59.999+00:00"


def test_a_date_that_does_not_exist_in_utc_is_refused() -> None:
    codec = DateCodec(takes_none=False)
    with pytest.raises(Misfit):
        codec.decode("0001-01-01T00:00:00+14:00")
    with pytest.raises(Misfit):
        codec.encode(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))))
