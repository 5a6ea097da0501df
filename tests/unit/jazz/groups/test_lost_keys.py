"""Keys that can't be found, because their reveal is void or depends on itself."""

from itertools import pairwise

import pytest
from support.jazz_controlled_nodes import DetachedNode, exchange, exchange_during, registered
from support.jazz_nodes import Clock

from reside.jazz import CoMap, JazzError

pytestmark = pytest.mark.anyio


async def meets(hub: DetachedNode, node: DetachedNode) -> None:
    """Send a node everything that the hub has."""
    node.connect()
    await exchange(hub, node)


async def loaded(hub: DetachedNode, node: DetachedNode, co_id: str) -> CoMap:
    """Return a map; pass messages on until it is there."""
    found = await exchange_during(hub, node, node.load_map(co_id))
    assert isinstance(found, CoMap)
    return found


async def as_a_new_reader_sees_it(hub: DetachedNode, who: DetachedNode, co_id: str) -> dict[str, object]:
    """Return the content of a map for another node of an account."""
    fresh = DetachedNode(who.credentials)
    await exchange_during(hub, fresh, fresh.login())
    return (await loaded(hub, fresh, co_id)).as_dict()


@pytest.mark.parametrize("nested", [False, True])
async def test_content_under_the_key_of_a_void_rotation_is_lost_for_all(*, nested: bool) -> None:
    hub, clock = DetachedNode(), Clock()  # no two steps of this have the same millisecond
    owner, admin, third = [await registered(hub, name, clock) for name in ("owner", "admin", "third")]
    group = owner.create_group()
    for member in (admin, third):
        await exchange_during(hub, owner, group.add_member(member.account_id, "admin" if member is admin else "writer"))
    value = (group.create_child() if nested else group).create_map({"before": 1})
    await exchange(hub, owner)
    theirs = await exchange_during(hub, admin, admin.load_group(group.id))
    before = clock()
    await exchange_during(hub, admin, theirs.remove_member(third.account_id))
    await meets(hub, owner)
    assert group.role_of(third.account_id) is None
    value.set("after", 2)
    await exchange(hub, owner)
    assert value.as_dict() == {"before": 1, "after": 2}
    assert await as_a_new_reader_sees_it(hub, owner, value.id) == {"before": 1, "after": 2}

    # The admin dates the change of the key after the end of its role.
    step = [{"op": "set", "key": admin.account_id, "value": "reader"}]
    admin.transact(group.id, step, private=False, made_at=before)
    await exchange(hub, admin)
    await meets(hub, owner)
    assert group.role_of(third.account_id) == "writer"
    assert value.as_dict() == await as_a_new_reader_sees_it(hub, owner, value.id)


@pytest.mark.parametrize("circle", [("key_zA",), ("key_zA", "key_zB"), ("key_zA", "key_zB", "key_zC")])
async def test_a_key_that_is_revealed_under_itself_is_searched_once(circle: tuple[str, ...]) -> None:
    """In cojson 0.20.19 it overflows the stack (`getUncachedReadKey`)."""
    hub = DetachedNode()
    owner = await registered(hub, "owner")
    group = owner.create_group()
    value = group.create_map({"before": 1})
    steps = {f"{key}_for_{under}": "encrypted_UJunk" for key, under in pairwise([*circle, circle[0]])}
    for key, to in {**steps, "readKey": circle[0]}.items():
        change = {"op": "set", "key": key, "value": to}
        owner.transact(group.id, [change], private=False, made_at=owner.now_ms() + 1000)
    with pytest.raises(JazzError, match="needs a read key"):
        value.set("after", 2)
    await exchange(hub, owner)
    assert value.as_dict() == await as_a_new_reader_sees_it(hub, owner, value.id) == {"before": 1}
