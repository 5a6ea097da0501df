"""Secrets are masked in the text form of objects that contain them, which logs and errors would print."""

import pytest
from support.jazz_controlled_nodes import DetachedNode, registered

from reside.jazz import Credentials, sign_request
from reside.jazz.rules.group_state import GroupState
from reside.jazz.rules.keys import current_key_id, find_secret
from reside.jazz.tokens.form import BOUND, parse

pytestmark = pytest.mark.anyio


async def test_a_read_key_is_masked_in_objects_that_contain_it() -> None:
    node = await registered(DetachedNode(), "someone")
    group = node.create_group()
    group.create_map({"x": 1})
    assert isinstance(group._state, GroupState)
    secret = find_secret(node._host.store, group.id, current_key_id(group._state, node.account_id) or "")
    core, permit = node._host.store.core(group.id), node._host.writer._permits[group.id]
    assert secret is not None
    assert secret in core.secrets.values()
    assert secret == permit.secret
    assert secret not in repr(core) + repr(permit)


def test_a_token_is_masked() -> None:
    caller = Credentials.generate()
    header = sign_request(caller, receiver=caller.account_id, method="GET", path="/", body=b"", now_ms=1)
    token = parse(header, BOUND)
    assert token.proof in header
    assert token.proof not in repr(token)
