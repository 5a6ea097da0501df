"""Which transactions are validated again when others arrive; the verdicts do not depend on it."""

import random
from collections.abc import Iterator
from unittest.mock import patch

import pytest
from support.jazz_controlled_nodes import DetachedNode
from unit.jazz.logs import Log, judge

from reside.jazz import AgentId, Group
from reside.jazz.groups.rotation import Rotation
from reside.jazz.groups.writer import GroupWriter
from reside.jazz.ids import SessionId
from reside.jazz.rules.group_state import WRITERS, GroupState
from reside.jazz.rules.permissions import GroupValidator, refusal_of_write
from reside.jazz.rules.ties import Ruling
from reside.jazz.wire.crypto import Agent, new_agent_secret
from reside.jazz.wire.encoding import parse_json
from reside.jazz.wire.session import Transaction

pytestmark = pytest.mark.anyio

ADMIN = "co_zAdmin"
FAR = 2**53 - 1
FORGED = '[{"op":"set","key":"x","value":"forged"}]'


@pytest.fixture
def judged() -> Iterator[list[str]]:
    """Yield the keys of all transactions of groups that are validated while the test runs."""
    steps: list[str] = []
    real = GroupValidator.judge

    def counted(self: GroupValidator, transaction: Transaction) -> Ruling:
        steps.append(self.state.co_id)
        return real(self, transaction)

    with patch.object(GroupValidator, "judge", counted):
        yield steps


@pytest.fixture
async def group() -> Group:
    """Return a new group of a node without a server."""
    node = DetachedNode()
    node._host.writer.create(node._runtime.account_header)
    return node.create_group()


def _grant(group: Group, number: int, latest: int = 0) -> None:
    core = group._host.store.core(group.id)
    latest = max(latest, group._state.latest)
    group._host.write_trusting(core, f"co_zMember{number}", "writer", latest=latest)


async def test_each_transaction_of_a_growing_group_is_validated_once(judged: list[str], group: Group) -> None:
    group._refresh()
    judged.clear()
    for number in range(300):
        _grant(group, number)
        assert group.role_of(f"co_zMember{number}") == "writer"
    assert len(judged) == 300


async def test_a_value_is_not_validated_again_when_its_group_grows(group: Group) -> None:
    value = group.create_map({"x": 0})
    for number in range(200):
        value.set("x", number)
    assert value["x"] == 199
    with patch("reside.jazz.values.content.refusal_of_write", side_effect=refusal_of_write) as asked:
        for number in range(100):
            _grant(group, number, latest=value.history("x")[-1].at)
            assert value["x"] == 199
        value.set("x", "more")
        assert value["x"] == "more"
    assert asked.call_count == 1


async def test_a_child_is_not_validated_again_when_its_parent_grows(judged: list[str], group: Group) -> None:
    child = group.create_child()
    value = child.create_map({"x": 0})
    assert value["x"] == 0
    judged.clear()
    after_child = child._state.latest + 1  # a change of the parent at the time of one of the child validates that again
    for number in range(100):
        _grant(group, number, latest=after_child)
        assert child.role_of(f"co_zMember{number}") == "writer"
        assert value["x"] == 0
    assert judged == [group.id] * 100


async def test_a_role_revoked_in_the_parent_ends_in_the_child(group: Group) -> None:
    child = group.create_child()
    group._writer.set("co_zMember", "writer")
    assert child.role_of("co_zMember") == "writer"
    before = child._refresh()
    group._writer.set("co_zMember", "revoked")
    assert child._refresh() > before
    assert child.role_of("co_zMember") is None


@pytest.mark.parametrize("made_at", [0, FAR])
async def test_what_can_never_count_restarts_no_validation_and_is_read_once(
    judged: list[str], group: Group, made_at: int
) -> None:
    """Strangers write it with any date; the changes of members are validated incrementally all the same."""
    stranger = Agent.from_secret(new_agent_secret())
    core = group._host.store.core(group.id)
    payloads = [
        "nope",
        "[" * 3000,
        "[]",
        '[{"op":"set","key":"x","value":"forged"}]',
        '[{"op":"del","key":"x"}]',
        "[1]",
    ]
    for number in range(50):
        assert group.role_of(stranger.agent_id) is None
        session = SessionId(f"{stranger.agent_id}_session_z{number}")
        payload = payloads[number % len(payloads)]
        core.add(Transaction(session, 0, made_at, payload, None, None, stranger.agent_id))
        group._host.store.changed(core)
    judged.clear()
    with patch("reside.jazz.rules.inert.parse_json", side_effect=parse_json) as parsed:
        for number in range(20):
            _grant(group, number, latest=group._state.latest)
            assert group.role_of(f"co_zMember{number}") == "writer"
    assert len(judged) == 20
    assert parsed.call_count <= 21, "the last junk, and each grant"
    assert len(group._state.verdicts) == len(core.transactions)


def test_junk_in_the_millisecond_of_a_change_costs_linear_time() -> None:
    log = Log()
    log.set(ADMIN, 1, ADMIN, "admin")
    for number in range(2000):
        log.set("co_zEve", 2, "x", "forged", tail=f"z{number}")
    log.set(ADMIN, 2, "co_zMember", "writer")
    compared = 0

    def counted(_self: Transaction, _other: object) -> bool:
        nonlocal compared
        compared += 1
        return False

    with patch.object(Transaction, "__eq__", counted):
        state = judge(log, admin=ADMIN)
    assert state.role_of("co_zMember") == "writer"
    assert compared == 0


def _verdicts(state: GroupState) -> dict[tuple[str, int], str | None]:
    return {(item.transaction.session, item.transaction.index): item.refusal for item in state.verdicts}


@pytest.mark.parametrize("seed", range(20))
def test_incremental_and_full_validation_agree(seed: int) -> None:
    """However a log is divided into parts, verdicts, roles and epochs equal those of one pass."""
    rng = random.Random(seed)  # noqa: S311 - a seed to replay, no secret
    log = Log()
    log.set(ADMIN, 1, ADMIN, "admin")
    members = [f"co_z{name}" for name in ("A", "B", "C", "D")]
    roles = ["admin", "manager", "writer", "reader", "writeOnly", "revoked", "readerInvite", "adminInvite"]
    time = 1
    for _ in range(60):
        time += rng.choice((0, 1, 5))
        author = rng.choice([ADMIN, *members])
        key = rng.choice([*members, "everyone", "readKey", f"writeKeyFor_{author}", "parent_co_zParent"])
        log.set(author, time, key, rng.choice([*roles, "extend", "key_zX"]))
    parent_log = Log()
    parent_log.set(ADMIN, 1, ADMIN, "admin")
    for number, member in enumerate(members):
        parent_log.set(ADMIN, 10 * number, member, rng.choice(roles))
    parent = judge(parent_log, admin=ADMIN, co_id="co_zParent")
    whole = judge(log, admin=ADMIN, groups={"co_zParent": parent})

    pieces = GroupState("co_zGroup", None, lambda parent_id: parent if parent_id == "co_zParent" else "missing")
    judging = GroupValidator(pieces, ADMIN)
    start = 0
    for end in (*sorted(rng.sample(range(1, 61), 6)), 61):
        piece = log.transactions[start:end]
        if not judging.can_resume(piece):
            pieces = GroupState("co_zGroup", None, pieces.find_parent)
            judging = GroupValidator(pieces, ADMIN)
            piece = log.transactions[:end]
        judging.resume(piece)
        for member in members:
            pieces.role_of(member)
        start = end
    assert _verdicts(pieces) == _verdicts(whole)
    assert pieces.epochs() == whole.epochs()
    for at in range(time + 2):
        for member in (*members, ADMIN, "everyone", "co_zStranger"):
            assert pieces.role_of(member, at) == whole.role_of(member, at)
            since, until = whole.writes_during(member, at)
            assert (since <= at < until) == (whole.role_of(member, at) in WRITERS)
            assert all(whole.role_of(member, then) in WRITERS for then in range(since, min(until, time + 2)))


async def test_a_member_added_after_many_key_rotations_reads_the_first_content(group: Group) -> None:
    """Each old key is encrypted under the next one; such a chain is followed without recursion."""
    first = group._writer.read_key()
    for _ in range(400):
        Rotation(group, []).run()
    agent = Agent.from_secret(new_agent_secret())
    await group.add_member(AgentId(agent.agent_id), "reader")
    late = GroupWriter(group._host, group._host.store.core(group.id), invite_agent=agent)
    assert late.secret(first.key_id) == first.secret
    assert late.read_key() == group._writer.read_key()


def _validated_again(chain: list[Group], order: list[int]) -> list[str | None]:
    """Return all roles in each group, computed in this order for groups without a state."""
    store = chain[0]._host.store
    for each in chain:
        core = store.core(each.id)
        core.group_state = core.validation = None
    for place in order:
        store.group_state(chain[place].id)
    return [each.role_of("co_zMember") for each in chain]


async def test_a_role_is_inherited_through_any_number_of_parents_in_any_order_of_validation(group: Group) -> None:
    group._writer.set("co_zMember", "writer")
    chain = [group]
    for _ in range(80):
        chain.append(chain[-1].create_child())
    places = list(range(len(chain)))
    shuffled = random.Random(1).sample(places, len(places))  # noqa: S311 - a seed to replay, no secret
    for order in (places, places[::-1], shuffled):
        assert _validated_again(chain, order) == ["writer"] * len(chain)


async def test_a_long_chain_is_validated_again_when_its_far_end_changes(group: Group) -> None:
    chain = [group]
    for _ in range(80):
        chain.append(chain[-1].create_child())
    assert _validated_again(chain, [len(chain) - 1])[-1] is None
    group._writer.set("co_zMember", "reader")
    assert chain[-1].role_of("co_zMember") == "reader"
    group._writer.set("co_zMember", "revoked")
    assert chain[-1].role_of("co_zMember") is None


async def test_a_cycle_of_very_many_groups_is_validated(group: Group) -> None:
    """Only an admin of all of them can close the cycle, by a back-dated extension. Roles from outside of it count."""
    chain = [group]
    for _ in range(80):
        chain.append(chain[-1].create_child())
    host, last = group._host, chain[-1]
    at = 1 + max(each._state.latest for each in chain)
    session = host.writer.session
    core = host.store.core(group.id)
    back = Transaction(
        session,
        core.count(session),
        at,
        f'[{{"op":"set","key":"parent_{last.id}","value":"extend"}}]',
        None,
        None,
        host.account_id,
    )
    core.log(session).append_own(back)
    core.add(back)
    host.store.changed(core)
    for order in ([0], [len(chain) - 1], [40]):
        roles = _validated_again(chain, order)
        assert all(each.role_of(host.account_id) == "admin" for each in chain)
        assert roles == [None] * len(chain)
