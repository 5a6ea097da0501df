"""Sessions of authors without a role are counted, but neither verified nor kept, until the authors have a role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.jazz_controlled_nodes import DetachedNode, exchange, exchange_during, registered
from unit.jazz.messages import core_of, whole_of

if TYPE_CHECKING:
    from reside.jazz import CoMap

pytestmark = pytest.mark.anyio


class Setup:
    """An owner with a map, a stranger that writes to it, and a reader, each connected to the hub when `sync` is called.

    Attributes:
        session: the stranger's session.
    """

    def __init__(self, hub: DetachedNode, owner: DetachedNode, stranger: DetachedNode, reader: DetachedNode) -> None:
        self.hub = hub
        self.owner = owner
        self.stranger = stranger
        self.reader = reader
        self.session = stranger._host.writer.session

    async def sync(self) -> None:
        """Exchange messages until all nodes have all."""
        for _ in range(2):
            for node in (self.owner, self.stranger, self.reader):
                await exchange(self.hub, node)

    async def load(self, value: CoMap, node: DetachedNode) -> CoMap:
        """Load the map with a node."""
        return await exchange_during(self.hub, node, node.load_map(value.id))


@pytest.fixture
async def setup(monkeypatch: pytest.MonkeyPatch) -> Setup:
    """Return three registered nodes; the hub keeps everything, as a server does."""
    hub = DetachedNode()
    monkeypatch.setattr(hub._runtime._exchange.receiver._skipping, "skips", lambda _core, _batch: False)
    return Setup(hub, *[await registered(hub, name) for name in ("owner", "stranger", "reader")])


async def _map(setup: Setup, everyone: Any = None) -> CoMap:
    group = setup.owner.create_group()
    await exchange_during(setup.hub, setup.owner, group.add_member(setup.reader.account_id, "reader"))
    if everyone is not None:
        await exchange_during(setup.hub, setup.owner, group.add_member("everyone", everyone))
    value = group.create_map({"x": 1})
    await setup.sync()
    return value


async def _write(setup: Setup, value: CoMap, *, made_at: int | None = None, meta: dict[str, Any] | None = None) -> None:
    """Write to the map as the stranger, who has no role."""
    await setup.load(value, setup.stranger)
    at = setup.stranger.now_ms() if made_at is None else made_at
    changes = [] if meta else [{"op": "set", "key": "x", "value": 2}]
    setup.stranger.transact(value.id, changes, private=False, made_at=at, meta=meta)
    await setup.sync()


async def test_a_session_without_a_role_is_counted_and_not_kept(setup: Setup) -> None:
    value = await _map(setup)
    await _write(setup, value)
    found = await setup.load(value, setup.reader)
    core = core_of(setup.reader, value)
    assert setup.session not in core.sessions
    assert core.ignored_counts() == {setup.session: 1}
    assert [(index, why) for session, index, why in found.refusals() if session == setup.session] == [
        (0, "its author has no role in the group, so it was neither verified nor kept")
    ]
    assert found.as_dict() == {"x": 1}
    setup.reader.cut()
    setup.reader.connect()
    asked = [message for message in setup.reader.take() if message["id"] == value.id]
    assert asked[0]["sessions"][setup.session] == 1, "the server must not send it again"


@pytest.mark.parametrize("member", [True, False], ids=["direct role", "everyone"])
async def test_it_is_asked_for_when_its_author_gets_a_role(setup: Setup, *, member: bool) -> None:
    value = await _map(setup)
    later = setup.owner.now_ms() + 60_000
    await _write(setup, value, made_at=later)
    await setup.load(value, setup.reader)
    setup.owner.cut()
    setup.owner.connect()
    await setup.sync()
    for node in (setup.owner, setup.reader):
        assert core_of(node, value).ignored_counts() == {setup.session: 1}
    receiver = setup.stranger.account_id if member else "everyone"
    await exchange_during(setup.hub, setup.owner, value.group.add_member(receiver, "writer"))
    await setup.sync()
    setup.reader.cut()
    setup.reader.connect()  # the hub pushes changes to one node only
    await setup.sync()
    for node in (setup.owner, setup.reader):
        assert (await setup.load(value, node)).as_dict() == {"x": 2}
        assert not core_of(node, value).ignored_counts()


async def test_a_role_in_a_parent_counts(setup: Setup) -> None:
    value = await _map(setup)
    await _write(setup, value, made_at=setup.owner.now_ms() + 60_000)
    parent = setup.owner.create_group()
    await exchange_during(setup.hub, setup.owner, parent.add_member(setup.stranger.account_id, "writer"))
    await exchange_during(setup.hub, setup.owner, value.group.extend(parent))
    await setup.sync()
    assert (await setup.load(value, setup.reader)).as_dict() == {"x": 2}


async def test_a_group_change_without_new_members_asks_for_nothing(setup: Setup) -> None:
    value = await _map(setup, "reader")
    await _write(setup, value)
    found = await setup.load(value, setup.reader)
    await exchange_during(setup.hub, setup.owner, value.group.add_member(setup.owner.account_id, "admin"))
    newcomer = await registered(setup.hub, "newcomer")
    await exchange_during(setup.hub, setup.owner, value.group.add_member(newcomer.account_id, "writer"))
    await exchange(setup.hub, setup.owner)
    for message in setup.hub.take():
        setup.reader.give(message)
    assert [item for item in setup.reader.take() if item["action"] == "load" and item["id"] == value.id] == []
    assert found.as_dict() == {"x": 1}


async def test_a_readers_pointer_to_a_branch_is_kept(setup: Setup) -> None:
    value = await _map(setup, "reader")
    await _write(setup, value, meta={"branch": "mine", "ownerId": setup.stranger.account_id})
    await setup.load(value, setup.reader)
    assert setup.session in core_of(setup.reader, value).sessions


async def test_a_gap_in_a_skipped_session_is_corrected(setup: Setup) -> None:
    value = await _map(setup)
    await _write(setup, value)
    await _write(setup, value)
    message = whole_of(setup.hub, value)
    reader = await registered(setup.hub, "late")
    await exchange_during(setup.hub, reader, reader.load_group(value.group.id))
    batch = message["new"][setup.session]
    message["new"] = {setup.session: batch | {"after": 1, "newTransactions": batch["newTransactions"][1:]}}
    reader.give(message)
    sent = [item for item in reader.take() if item["id"] == value.id]
    assert sent[-1].get("isCorrection") is True
    assert not core_of(reader, value).ignored_counts()


async def test_what_arrives_is_acknowledged_without_the_other_sessions(setup: Setup) -> None:
    """Otherwise each update of a value with very many sessions would cost as much as all of them."""
    value = await _map(setup)
    await _write(setup, value)
    await setup.load(value, setup.reader)
    value.set("x", 3)
    setup.stranger.transact(value.id, [], private=False, made_at=setup.stranger.now_ms())
    owner = setup.owner._host.writer.session
    for writer, session in ((setup.owner, owner), (setup.stranger, setup.session)):
        (content,) = [message for message in writer.take() if message["action"] == "content"]
        setup.reader.take()
        setup.reader.give(content)
        known = {"action": "known", "id": value.id, "header": True, "sessions": {session: 2}}
        assert setup.reader.take() == [known]


async def test_announced_sessions_that_arrived_are_not_checked_again(setup: Setup) -> None:
    value = await _map(setup)
    await _write(setup, value)
    await setup.load(value, setup.reader)
    core = core_of(setup.reader, value)
    owner = setup.owner._host.writer.session
    core.expected = {owner: 1, setup.session: 1, f"{setup.owner.account_id}_session_zOther": 1}
    assert not core.is_complete()
    assert list(core.expected) == [f"{setup.owner.account_id}_session_zOther"]
    core.expected = {owner: 1, setup.session: 1}
    assert core.is_complete()
    assert core.expected == {}


async def test_a_released_session_is_asked_for_after_the_acknowledgement_that_counts_it(setup: Setup) -> None:
    """Otherwise the server takes what is asked for as known."""
    value = await _map(setup)
    await setup.load(value, setup.stranger)
    await setup.load(value, setup.reader)
    setup.stranger.transact(value.id, [{"op": "set", "key": "x", "value": 2}], private=False, made_at=1)
    written = [item for item in setup.stranger.take() if item["action"] == "content"]
    await exchange_during(setup.hub, setup.owner, value.group.add_member(setup.stranger.account_id, "writer"))
    await exchange(setup.hub, setup.owner)
    setup.reader.connections[0].sync.ask(setup.reader._host.store.core(value.group.id))
    setup.hub.give(*setup.reader.take())
    promoted = [item for item in setup.hub.take() if item["action"] == "content" and item["id"] == value.group.id]
    setup.reader.give(*written, *promoted)
    sent = [item["action"] for item in setup.reader.take_queued() if item["id"] == value.id]
    assert sent == ["known", "load"]
