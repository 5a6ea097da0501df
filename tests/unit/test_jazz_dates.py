"""Dates that no honest clock gives: whoever writes one harms nobody but what it writes itself."""

import pytest
from support.jazz_liar import carried
from support.jazz_wire import Loose, connected_to, registered

from reside.jazz.wire.session import MAX_TIME

pytestmark = pytest.mark.anyio


async def test_what_is_written_after_the_end_of_all_time_is_still_taken_by_all() -> None:
    hub = Loose()
    owner = await registered(hub, "owner")
    group = owner.create_group()
    await group.add_member("everyone", "reader")
    value = group.create_map({"x": 0})
    last = [{"op": "set", "key": "last", "value": True}]
    owner.transact(value.id, last, private=True, made_at=MAX_TIME)
    value.set("x", 1)
    value.set("x", 2)
    await connected_to(hub, owner)
    reader = Loose()
    found = await carried(hub, reader, reader.load_map(value.id))
    assert found.as_dict() == value.as_dict() == {"x": 2, "last": True}
