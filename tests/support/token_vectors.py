"""The vectors of request tokens (docs/wire.md, section 5); see `support.wire_vectors`."""

from __future__ import annotations

import hmac
from typing import Any, Final

from reside.jazz import Credentials, sign_request
from reside.jazz.tokens.form import BOUND, SHARED, digest, parse, signed_text
from reside.jazz.tokens.shared import code_of, shared_key
from reside.jazz.wire.crypto import Agent
from reside.jazz.wire.encoding import b58encode
from reside.jazz.wire.header import account_header
from reside.model.endpoints import rpc_path, signed_path

CONTRACT: Final = "registry.example/contracts/greeting.v1"
NOW: Final = 1_795_266_000_000
BODY: Final = '{"name":"Zoë"}'
PATH: Final = signed_path(rpc_path("greeter", CONTRACT, "greet"), "Zm9vYmFyYmF6cXV4")


def fixed(number: int) -> Credentials:
    """Return the credentials whose two keys are 32 bytes of this number."""
    key = b58encode(bytes([number]) * 32)
    return Credentials.from_secret(f"sealerSecret_z{key}/signerSecret_z{key}")


CALLER, OTHER, RECEIVER = fixed(1), fixed(2), fixed(3)


def _account(credentials: Credentials) -> dict[str, str]:
    secret = credentials.agent_secret
    return {
        "agentSecret": secret,
        "agentId": Agent.from_secret(secret).agent_id,
        "accountId": credentials.account_id,
    }


def _header(credentials: Credentials = CALLER, **changed: Any) -> str:
    request: dict[str, Any] = {
        "receiver": RECEIVER.account_id,
        "method": "POST",
        "path": PATH,
        "body": BODY.encode(),
        "now_ms": NOW,
        "nonce": "bm9uY2Utb2YtMTYtYnl0ZXM",
    }
    return sign_request(credentials, **(request | changed))


def tokens() -> dict[str, Any]:
    """Return a token with its parts, and requests that its receiver accepts or refuses."""
    header = _header()
    fields = header.removeprefix(BOUND).split("~")
    foreign = "~".join([fields[0], OTHER.account_id, *fields[2:]])
    forged = "~".join([_header(body=b"{}").removeprefix(BOUND).split("~")[0], *fields[1:]])
    stolen = _header(OTHER).removeprefix(BOUND).split("~")
    cases = [
        _case("valid", header, "accepted"),
        _case("used before", header, "reused", before=1),
        _case("no header", None, "missing"),
        _case("another scheme", f"Bearer {fields[0]}", "malformed"),
        _case("a field too few", header.rpartition("~")[0], "malformed"),
        _case("no nonce", _header(nonce=""), "malformed"),
        _case("a nonce of 65 characters", _header(nonce="n" * 65), "malformed"),
        _case("a nonce that JSON escapes", _header(nonce='encrypted_U"'), "malformed"),
        _case("a time with a leading zero", header.replace(f"~{NOW}~", f"~0{NOW}~"), "malformed"),
        _case("60 s old", header, "accepted", now=NOW + 60_000),
        _case("more than 60 s old", header, "expired", now=NOW + 60_001),
        _case("60 s ahead", header, "accepted", now=NOW - 60_000),
        _case("more than 60 s ahead", header, "future", now=NOW - 60_001),
        _case("for another receiver", _header(receiver=OTHER.account_id), "receiver"),
        _case("for another method", _header(method="PUT"), "method"),
        _case("for another process", header, "path", path=PATH.rpartition("#")[0] + "#b3RoZXI"),
        _case("for another path", header, "path", path=PATH.replace("greet#", "leave#")),
        _case("for another body", header, "body", body="{}"),
        _case("the name of another account", BOUND + foreign, "account"),
        _case("a signature of another request", BOUND + forged, "signature"),
        _case("a signature of another account", BOUND + "~".join([stolen[0], *fields[1:]]), "signature"),
        *_shared_cases(),
    ]
    made = parse(header, BOUND)
    shared = _shared()
    return {
        "accounts": {"caller": _account(CALLER), "other": _account(OTHER), "receiver": _account(RECEIVER)},
        "request": {"method": "POST", "path": PATH, "body": BODY, "nonce": made.nonce, "madeAt": NOW},
        "token": {
            "pathHash": digest(PATH.encode()),
            "bodyHash": digest(BODY.encode()),
            "signedText": signed_text(made),
            "header": header,
        },
        "shared": {
            "key": shared_key(CALLER._agent, RECEIVER.agent_id).hex(),
            "text": signed_text(parse(shared, SHARED)),
            "header": shared,
        },
        "cases": cases,
    }


def _shared(credentials: Credentials = CALLER, receiver: Credentials = RECEIVER, **changed: Any) -> str:
    return _header(credentials, receiver_agent_id=receiver.agent_id, **changed)


def _shared_cases() -> list[dict[str, Any]]:
    """Return requests with a code in place of a signature, which is made with the key of caller and receiver."""
    header = _shared()
    fields = header.removeprefix(SHARED).split("~")
    key, sealer = shared_key(CALLER._agent, RECEIVER.agent_id), CALLER._agent.sealer_id
    return [
        _case("shared: valid", header, "accepted"),
        _case("shared: used before", header, "reused", before=1),
        _case("shared: a nonce that a signed token has used", header, "reused", before=1, beforeHeader=_header()),
        _case("shared: after a signed token", header, "accepted", before=1, beforeHeader=_header(nonce="other")),
        _case("shared: a signed token after it", _header(nonce="other"), "accepted", before=1, beforeHeader=header),
        _case("shared: more than 60 s old", header, "expired", now=NOW + 60_001),
        _case("shared: the key of another receiver", _shared(receiver=OTHER), "signature"),
        _case("shared: for another process", header, "path", path=PATH.rpartition("#")[0] + "#b3RoZXI"),
        _case("shared: for another body", header, "body", body="{}"),
        _case("shared: of the receiver for the caller", _shared(RECEIVER, CALLER), "signature"),
        _case("shared: the code of another request", _with_code(fields, _shared(body=b"{}")), "signature"),
        _case("shared: the code of another account", _with_code(fields, _shared(OTHER)), "signature"),
        _case("shared: a signature as the code", _with_code(fields, _header()), "signature"),
        _case("shared: no code", SHARED + "~".join(["", *fields[1:]]), "signature"),
        _case("shared: a code in upper case", SHARED + "~".join([fields[0].upper(), *fields[1:]]), "signature"),
        _case("shared: the code as a signature", BOUND + "~".join(fields), "signature"),
        _case("shared: a sealer of low order", _low_order(fields), "signature"),
        _case("shared: a nonce that JSON escapes", _shared(nonce='encrypted_U"'), "malformed"),
        _case("shared: an agent without a signer", _of_agent(fields, sealer, key), "signature"),
        _case("shared: a letter in place of a signer", _of_agent(fields, f"{sealer}x", key), "signature"),
    ]


def _with_code(fields: list[str], other: str) -> str:
    """Return a shared token whose code is the proof of another token."""
    return SHARED + "~".join([other.partition(" ")[2].split("~")[0], *fields[1:]])


def _low_order(fields: list[str]) -> str:
    """Return the token of an account whose sealer is zero, so that everybody knows its shared secret: 32 zeros."""
    agent_id = f"sealer_z{b58encode(bytes(32))}/{CALLER.agent_id.partition('/')[2]}"
    return _of_agent(fields, agent_id, hmac.digest(bytes(32), b"Jazz-Shared", "sha256"))


def _of_agent(fields: list[str], agent_id: str, key: bytes) -> str:
    """Return the token of the account of an agent, with a code made with this key."""
    account = account_header(agent_id).co_id
    covered = "~".join([account, fields[2], agent_id, *fields[4:]])
    code = code_of(signed_text(parse(f"{SHARED}~{covered}", SHARED)), key)
    return f"{SHARED}{code}~{covered}"


def _case(name: str, header: str | None, result: str, **changed: Any) -> dict[str, Any]:
    request: dict[str, Any] = {"method": "POST", "path": PATH, "body": BODY, "now": NOW, "before": 0}
    return {"name": name, "header": header, **request, **changed, "result": result}
