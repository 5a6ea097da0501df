"""Every hash, id, seal and cipher is the same in Python and in the official JavaScript package."""

import json
from typing import Any

import pytest
from interop.javascript import javascript

from reside.jazz import Credentials, sign_jazz_token
from reside.jazz.wire import crypto as ours
from reside.jazz.wire.encoding import stable_json
from reside.jazz.wire.header import account_header, parse_header, unique_header

pytestmark = pytest.mark.anyio

SECRET = (
    "sealerSecret_z5LRDYvmvCkBGwtDSPJtyEtSLzLkNc1EFoK7AUb5q7ZGd"
    "/signerSecret_z8CRkDq5tMyPBJPAWVcKzYtBTo6iM4qJJSWbeGPLZHPDc"
)
KEY = ours.ReadKey("key_z2pvLNgLdpr1nYFzF", "keySecret_z5LRDYvmvCkBGwtDSPJtyEtSLzLkNc1EFoK7AUb5q7ZGd")
MATERIAL = {"in": "co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp", "tx": {"sessionID": "co_zX_session_zY", "txIndex": 7}}


@pytest.mark.parametrize(
    "source",
    [
        '{"b":1,"a":[1.0,1e21,1e-7,-0,0.1,123456789012345680000,1e-6,5e-324,1.7976931348623157e308],"é":"ü\\u2028"}',
        '{"\\ud83d\\ude00":1,"\\uffff":2,"z":null,"true":true}',
        '["\\ud800 lone","\\u0000\\u001f\\u007f\\"\\\\/","\\b\\t\\n\\f\\r"]',
        "[1.5e300,2e-10,100,1e20,12345.678,9007199254740993,0.000001234]",
    ],
)
async def test_stable_json_is_byte_for_byte_that_of_javascript(source: str) -> None:
    async with javascript() as js:
        expected = await js("stableOf", source=source)
        assert stable_json(json.loads(source)) == expected


async def test_ids_and_hashes() -> None:
    async with javascript() as js:
        value = {"z": [1, "ä"], "a": None}
        assert ours.secure_hash(value) == await js("crypto", name="secureHash", args=[value])
        assert "shortHash_z" + ours.short_hash(stable_json(value)) == await js("crypto", name="shortHash", args=[value])
        agent = ours.Agent.from_secret(SECRET)
        assert agent.agent_id == await js("crypto", name="getAgentID", args=[SECRET])
        assert Credentials.from_secret(SECRET).account_id == await js("accountID", secret=SECRET)
        for header in (account_header(agent.agent_id), unique_header("comap", "co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp", "ü")):
            assert header.co_id == await js("header", header=dict(header.raw))


async def test_signatures_verify_both_ways() -> None:
    async with javascript() as js:
        agent = ours.Agent.from_secret(SECRET)
        signer_secret = SECRET.partition("/")[2]
        text: Any = "hash_z123"
        theirs = await js("crypto", name="sign", args=[signer_secret, text])
        assert agent.sign(stable_json(text)) == theirs
        assert ours.verify(theirs, stable_json(text), agent.signer_id)
        assert not ours.verify(theirs, stable_json("other"), agent.signer_id)


async def test_request_tokens_of_jazz_tools_are_equal() -> None:
    """jazz-tools signs the hash of id and time (its `generateAuthToken`); Ed25519 gives the same bytes each time."""
    async with javascript() as js:
        credentials = Credentials.from_secret(SECRET)
        digest = await js(
            "crypto", name="secureHash", args=[{"id": credentials.account_id, "createdAt": 1795266000000}]
        )
        signature = await js("crypto", name="sign", args=[SECRET.partition("/")[2], digest])
        header = sign_jazz_token(credentials, now_ms=1795266000000)
        assert header == f"Jazz {signature}~{credentials.account_id}~1795266000000"


async def test_encryption_sealing_and_group_sealers_are_the_same() -> None:
    async with javascript() as js:
        agent = ours.Agent.from_secret(SECRET)
        material = stable_json(MATERIAL)
        changes = [{"op": "set", "key": "k", "value": "ü"}]
        cipher = await js("crypto", name="encrypt", args=[changes, KEY.secret, MATERIAL])
        assert ours.encrypt_text(stable_json(changes), KEY.secret, material) == cipher
        assert json.loads(ours.decrypt(cipher, KEY.secret, material)) == changes

        under = ours.ReadKey("key_zother", "keySecret_z8CRkDq5tMyPBJPAWVcKzYtBTo6iM4qJJSWbeGPLZHPDc")
        keys = {"toEncrypt": vars(KEY) | {"id": KEY.key_id}, "encrypting": vars(under) | {"id": under.key_id}}
        encrypted = await js("crypto", name="encryptKeySecret", args=[keys])
        assert ours.encrypt_key(KEY, under) == encrypted["encrypted"]
        assert ours.decrypt_key(encrypted["encrypted"], KEY.key_id, under) == KEY.secret

        sealer_secret = SECRET.partition("/")[0]
        seal = {"message": KEY.secret, "from": sealer_secret, "to": agent.sealer_id, "nOnceMaterial": MATERIAL}
        sealed = await js("crypto", name="seal", args=[seal])
        assert ours.seal(KEY.secret, agent, agent.sealer_id, material) == sealed
        assert ours.unseal_key(sealed, agent, agent.sealer_id, material) == KEY.secret
        assert ours.unseal_key(sealed, agent, agent.sealer_id, "{}") is None

        sealer = await js("crypto", name="groupSealerFromReadKey", args=[KEY.secret])
        assert ours.group_sealer_value(KEY) == f"{KEY.key_id}@{sealer['publicKey']}"
        for_group = await js(
            "crypto",
            name="sealForGroup",
            args=[{"message": KEY.secret, "to": sealer["publicKey"], "nOnceMaterial": MATERIAL}],
        )
        assert ours.unseal_key_for_group(for_group, KEY.secret, material) == KEY.secret
        back = ours.seal_key_for_group(KEY.secret, sealer["publicKey"], material)
        assert await js("crypto", name="unsealForGroup", args=[back, sealer["secret"], MATERIAL]) == KEY.secret


async def test_a_header_from_javascript_hashes_to_its_id() -> None:
    header = {
        "type": "colist",
        "ruleset": {"type": "ownedByGroup", "group": "co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp", "restrictDeletion": True},
        "meta": {"b": 1, "a": "x"},
        "createdAt": "2026-11-21T10:15:59.510Z",
        "uniqueness": {"k": "v"},
    }
    async with javascript() as js:
        assert parse_header(header).co_id == await js("header", header=header)
