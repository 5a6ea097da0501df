"""The test vectors of docs/jazz-protocol.md, section 11: computed again from their inputs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

from reside.jazz import Credentials, sign_jazz_token, sign_request
from reside.jazz.groups.invites import agent_secret_from_seed
from reside.jazz.ids import CoId, SessionId
from reside.jazz.wire.crypto import (
    Agent,
    ReadKey,
    decrypt,
    encrypt_key,
    encrypt_text,
    group_sealer_value,
    nonce_of,
    transaction_material,
    unseal_key,
    verify,
)
from reside.jazz.wire.encoding import b58encode, stable_json
from reside.jazz.wire.header import account_header, parse_header, unique_header
from reside.jazz.wire.session import SessionLog, canonical, parse_transactions

PAGE = Path(__file__).parents[3] / "docs" / "jazz-protocol.md"


@pytest.fixture(scope="module")
def vectors() -> dict[str, Any]:
    """Return the only JSON block of the page."""
    (block,) = re.findall(r"^```json\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    found: dict[str, Any] = json.loads(block)
    return found


@pytest.fixture(scope="module")
def agent(vectors: dict[str, Any]) -> Agent:
    return Agent.from_secret(vectors["agentSecret"])


def read_key(vector: dict[str, str]) -> ReadKey:
    """Return the key that the page builds from bytes."""
    key = ReadKey(
        "key_z" + b58encode(bytes.fromhex(vector["idBytes"])),
        "keySecret_z" + b58encode(bytes.fromhex(vector["secretBytes"])),
    )
    assert (key.key_id, key.secret) == (vector["id"], vector["secret"])
    return key


def test_canonical_json(vectors: dict[str, Any]) -> None:
    for vector in vectors["canonical"]:
        assert stable_json(json.loads(vector["of"])) == vector["is"]


def test_an_account_follows_from_its_seed(vectors: dict[str, Any], agent: Agent) -> None:
    assert agent_secret_from_seed(bytes.fromhex(vectors["seed"])) == vectors["agentSecret"]
    assert agent.agent_id == vectors["agentId"]
    assert account_header(agent.agent_id).co_id == vectors["accountId"]
    session = vectors["session"]
    assert f"{vectors['accountId']}_session_z{b58encode(bytes.fromhex(session['tailBytes']))}" == session["id"]


def test_ids_follow_from_headers(vectors: dict[str, Any]) -> None:
    for name in ("group", "map", "unique"):
        assert parse_header(vectors[f"{name}Header"]).co_id == vectors[f"{name}Id"]
    made = unique_header("comap", vectors["groupId"], vectors["uniqueHeader"]["uniqueness"])
    assert made.raw == vectors["uniqueHeader"]


def test_keys(vectors: dict[str, Any]) -> None:
    key = read_key(vectors["readKey"])
    assert encrypt_key(read_key(vectors["olderKey"]), key) == vectors["olderKeyUnderReadKey"]
    assert group_sealer_value(key) == vectors["groupSealer"]


def test_the_sessions_of_a_new_group(vectors: dict[str, Any], agent: Agent) -> None:
    session = SessionId(vectors["session"]["id"])
    transactions = parse_transactions(vectors["groupTransactions"], session, 0)
    digest = b58encode(blake3("".join(canonical(transactions)).encode()).digest())
    assert f"hash_z{digest}" == vectors["groupHash"]
    assert verify(vectors["groupSignature"], f'"hash_z{digest}"', agent.signer_id)
    log = SessionLog(session)
    assert log.append_verified(transactions, vectors["groupSignature"], agent.signer_id)
    (change,) = json.loads(transactions[1].payload)
    material = transaction_material(vectors["groupId"], session, 1)
    assert unseal_key(change["value"], agent, agent.sealer_id, material) == vectors["readKey"]["secret"]


def test_a_private_transaction(vectors: dict[str, Any], agent: Agent) -> None:
    session, secret = SessionId(vectors["session"]["id"]), vectors["readKey"]["secret"]
    material = transaction_material(CoId(vectors["mapId"]), session, 0)
    assert material == stable_json(vectors["privateMaterial"])
    assert nonce_of(material).hex() == vectors["privateNonce"]
    encrypted = vectors["privateTransaction"]["encryptedChanges"]
    assert encrypt_text(vectors["privateChanges"], secret, material) == encrypted
    assert decrypt(encrypted, secret, material).decode() == vectors["privateChanges"]
    transactions = parse_transactions([vectors["privateTransaction"]], session, 0)
    assert SessionLog(session).append_verified(transactions, vectors["privateSignature"], agent.signer_id)


def test_request_tokens(vectors: dict[str, Any]) -> None:
    credentials, now, bound = Credentials.from_secret(vectors["agentSecret"]), vectors["now"], vectors["boundToken"]
    assert sign_jazz_token(credentials, now_ms=now) == vectors["jazzToken"]
    made = sign_request(
        credentials,
        receiver=bound["receiver"],
        method=bound["method"],
        path=bound["path"],
        body=bound["body"].encode(),
        nonce=bound["nonce"],
        now_ms=now,
    )
    assert made == bound["header"]
