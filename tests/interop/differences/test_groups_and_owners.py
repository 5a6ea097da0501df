"""Unusual transactions of groups, deletions, and values without a group."""

from typing import Any

import pytest
from interop.differences.conftest import Setup, set_key
from interop.javascript import JavaScriptError
from interop.strangers.stranger import stranger, trusting
from support.jazz_nodes import content, until

from reside.jazz import CoMap, InvalidContent, SessionId, now_ms
from reside.jazz.ids import author_of
from reside.jazz.wire.header import parse_header
from reside.jazz.wire.random_ids import new_delete_session, new_uniqueness
from reside.jazz.wire.session import Transaction

pytestmark = pytest.mark.anyio

LONG_AGO = 3_600_000


def _delete_session(setup: Setup, co_id: str, transaction: dict[str, Any], *, by_admin: bool) -> None:
    """Write a transaction in a new delete session of the admin or the writer."""
    node = setup.admin if by_admin else setup.writer
    core = node._host.store.core(co_id)
    session = SessionId(new_delete_session(node.account_id))
    node._host.writer._exchange.own_sessions.add(session)
    at, author = now_ms() + 1, author_of(session)  # after all other changes
    item = Transaction(session, 0, at, transaction["changes"], None, transaction.get("meta"), author)
    node._host.writer._append(core, item)


@pytest.mark.parametrize("meta", [{"fww": "x"}, {"mi": 0, "t": LONG_AGO}, {"branch": "b", "ownerId": "co_zX"}])
async def test_the_meta_of_a_groups_transaction_has_no_effect(setup: Setup, meta: dict[str, Any]) -> None:
    """In JavaScript it has some, but which depends on how often the reader has validated the group."""
    at = now_ms()
    await setup.group.add_member(setup.writer.account_id, "admin")
    await setup.admin.flush()
    await until(await setup.writer.load_group(setup.group.id), lambda group: group.my_role == "admin")
    for number, role in enumerate(("writer", "reader")):
        change = set_key("everyone", role)
        await setup.write(setup.group.id, change, meta=meta, made_at=max(at, now_ms()) + number)
    found: Any = await setup.python(setup.group.id)
    assert found.role_of("everyone") == "reader"
    assert found.role_of("everyone", at - LONG_AGO) is None
    await setup.javascript(setup.group.id)
    theirs = await setup.js("roleOf", actor="reader", group=setup.group.id, account="everyone")
    assert theirs == ("writer" if "fww" in meta else "reader")


async def test_a_delete_session_in_a_group_has_no_effect(setup: Setup) -> None:
    changes = f'[{{"op":"set","key":"{setup.writer.account_id}","value":"admin"}}]'
    _delete_session(setup, setup.group.id, {"changes": changes}, by_admin=True)
    assert setup.group.role_of(setup.writer.account_id) == "writer"
    assert [item.refusal for item in setup.group._state.verdicts][-1] == "groups and accounts can't be deleted"


async def test_a_deletion_that_names_another_value_does_not_count(setup: Setup) -> None:
    value, other = setup.group.create_map({"a": 1}), setup.group.create_map({"b": 1})
    _delete_session(
        setup,
        value.id,
        {"changes": '[{"op":"set","key":"a","value":2}]', "meta": f'{{"deleted":"{other.id}"}}'},
        by_admin=True,
    )
    assert content(value) == {"a": 1}
    assert not value.deleted
    assert [why for _, _, why in value.refusals()] == [None, "it names another value to delete"]


async def test_an_account_that_demoted_itself_has_the_lesser_role(setup: Setup) -> None:
    """In JavaScript its role is reported as admin, although readers refuse what it writes."""
    account: Any = setup.admin.account
    value = account.create_map({"a": 1})
    account._writer.set(account.agent_id, "reader")
    await setup.admin.flush()
    assert account.my_role == "reader"
    found: Any = await setup.python(account.id)
    assert found.role_of(account.id) == "reader"
    assert await setup.javascript(account.id) is not None
    assert await setup.js("roleOf", actor="reader", group=account.id, account=account.id) == "admin"
    setup.admin._host.writer.delete(value._core, latest=0)
    assert value.deleted, "it still deletes what it owns, as in JavaScript"


@pytest.mark.parametrize("private", [False, True])
async def test_a_value_without_an_owner_is_read_and_not_written(setup: Setup, *, private: bool) -> None:
    raw = {
        "type": "comap",
        "ruleset": {"type": "unsafeAllowAll"},
        "meta": None,
        "createdAt": None,
        "uniqueness": new_uniqueness(),
    }
    header = parse_header(raw)
    secret = {"encryptedChanges": "encrypted_UAAAA", "keyUsed": "key_z1", "madeAt": now_ms(), "privacy": "private"}
    async with stranger(setup.jazz.url) as who:
        batch = [trusting([set_key("a", 1)]), *([secret] if private else [])]
        await who.write(header.co_id, batch, header=raw)
        assert await who.sessions(header.co_id)
    found: CoMap = await setup.python(header.co_id)
    assert content(found) == {"a": 1}
    assert not found.has_owner
    with pytest.raises(InvalidContent, match="has no owner: it can be read but not written"):
        found.set("b", 2)
    with pytest.raises(InvalidContent, match="check `has_owner` first"):
        _ = found.group
    if private:
        with pytest.raises(JavaScriptError):
            await setup.javascript(header.co_id)
    else:
        assert await setup.javascript(header.co_id) == {"a": 1}
