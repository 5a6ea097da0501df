"""Hashes of session logs: that of a short log is not kept, and batches after it are verified all the same."""

from __future__ import annotations

import pytest

from reside.jazz.ids import SessionId
from reside.jazz.wire.crypto import Agent, new_agent_secret
from reside.jazz.wire.session import SessionLog, Transaction

SESSION = SessionId("co_zA_session_z1")


def item(index: int, payload: str = "[]") -> Transaction:
    return Transaction(SESSION, index, 1 + index, payload, None, None, "co_zA")


@pytest.mark.parametrize("payload", ["[]", f'["{"x" * 20_000}"]'])
def test_batches_of_a_log_are_verified_however_long_it_is(payload: str) -> None:
    agent, written, received = Agent.from_secret(new_agent_secret()), SessionLog(SESSION), SessionLog(SESSION)
    for index in range(12):
        written.append_own(item(index, payload))
        written.sign(agent)
        assert written.signature is not None
        assert received.append_verified([item(index, payload)], written.signature, agent.signer_id)
    assert not received.append_verified([item(12)], written.signature or "", agent.signer_id)
    assert len(received.transactions) == 12


def test_the_hash_of_a_short_log_is_not_kept() -> None:
    agent, log = Agent.from_secret(new_agent_secret()), SessionLog(SESSION)
    log.append_own(item(0))
    log.sign(agent)
    assert log._hasher is None
    for index in range(1, 12):
        log.append_own(item(index))
    log.sign(agent)
    assert log._hasher is not None
