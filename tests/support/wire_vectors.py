"""The test vectors of docs/wire.md: `python -m support.wire_vectors` in the folder `tests` writes them again.

Each file has inputs and results of one part of the wire. All secrets are repeated bytes and all times are fixed, so the
files are the same on every machine. `tests/unit/replica/test_wire_vectors.py` and the tests of `sdk/typescript` read
them.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx2
from support.token_vectors import CALLER, CONTRACT, OTHER, PATH, RECEIVER, tokens

from reside.jazz.wire.header import unique_header
from reside.locks.etcd import Etcd
from reside.locks.service import DEFAULT_TTL_S, DEFAULT_WAIT_S, LEADER_PREFIX, PREFIX
from reside.model import lookup
from reside.model.endpoints import (
    INSTANCE_HEADER,
    LIVENESS_PATH,
    READINESS_PATH,
    account_path,
    rpc_path,
)
from reside.model.permissions import Grant, PermissionRef
from reside.replica.transactions import LOCK_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

FOLDER: Final = Path(__file__).parents[1] / "vectors" / "wire"
GROUP: Final = "co_zJZRkGGkfRhZmt5Nktpjkpke2RX"
HOLDER: Final = "greeter on greeter-1-5c9d"
_LEASE: Final = 7587891234567890123


def locks() -> dict[str, Any]:
    """Return the keys of locks, and the requests with which they are taken, kept, confirmed and released."""
    space, block = RECEIVER.account_id, "co_zhpjiaBcrHraLPycevF7Q9G2x3N"
    names = [
        f"{LOCK_PREFIX}{block}",
        f"{LOCK_PREFIX}grant/{block}/{CALLER.account_id}",
        f"{LEADER_PREFIX}alpha",
    ]
    key = f"{PREFIX}{space}/{names[0]}"
    found = {"value": "Z3JlZXRlcg==", "create_revision": "41", "mod_revision": "43", "lease": str(_LEASE)}
    return {
        "account": space,
        "holder": HOLDER,
        "keys": [{"lock": name, "key": f"{PREFIX}{space}/{name}"} for name in names],
        "seconds": {"timeToLive": DEFAULT_TTL_S, "wait": DEFAULT_WAIT_S},
        "lease": str(_LEASE),
        "createRevision": "41",
        "modRevision": "43",
        "requests": [
            _request("grant", lambda etcd: etcd.grant(DEFAULT_TTL_S)),
            _request("create", lambda etcd: etcd.create(key, HOLDER, _LEASE)),
            _request("keep alive", lambda etcd: etcd.keep_alive(_LEASE, timeout=2.5)),
            _request("touch", lambda etcd: etcd.touch(key, HOLDER, 41, _LEASE)),
            _request("confirm", lambda etcd: etcd.confirm(key, 41, _LEASE)),
            _request("revoke", lambda etcd: etcd.revoke(_LEASE)),
            _request("time to live", lambda etcd: etcd.granted_ttl(_LEASE)),
            _request("delete unchanged", lambda etcd: etcd.delete_unchanged(key, 43)),
            _request("watch", lambda etcd: etcd.wait_deleted(key, 43, at_most=1.0)),
        ],
        "answers": [
            _answer("created", {"header": {"revision": "43"}, "succeeded": True, **_responses({}, found)}),
            _answer("held by another one", {"header": {"revision": "50"}, **_responses(found)}),
            _answer("gone", {"header": {"revision": "51"}, "responses": [{"response_range": {}}]}),
        ],
    }


def _responses(*found: dict[str, str]) -> dict[str, Any]:
    each = [{"response_range": {"kvs": [entry], "count": "1"}} if entry else {"response_put": {}} for entry in found]
    return {"responses": each}


def _request(operation: str, run: Callable[[Etcd], Any]) -> dict[str, Any]:
    """Return the request that an operation sends."""
    sent: list[tuple[str, Any]] = []
    answer = {
        "ID": "1",
        "header": {"revision": "1"},
        "responses": [{"response_range": {}}],
        "result": {"events": [{}]},
    }

    def note(request: httpx2.Request) -> httpx2.Response:
        sent.append((request.url.path, json.loads(request.content)))
        return httpx2.Response(200, json=answer)

    async def send() -> None:
        etcd = Etcd(["http://etcd:2379"], transport=httpx2.MockTransport(note))
        await run(etcd)
        await etcd.aclose()

    asyncio.run(send())
    ((path, body),) = sent
    return {"operation": operation, "path": path, "body": body}


def _answer(name: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the outcome of the answer to a transaction."""

    async def read() -> Any:
        transport = httpx2.MockTransport(lambda _: httpx2.Response(200, json=answer))
        etcd = Etcd(["http://etcd:2379"], transport=transport)
        outcome = await etcd.confirm("key", 1, 1)
        await etcd.aclose()
        return outcome

    outcome = asyncio.run(read())
    entry = outcome.entry
    read_entry = entry and {
        "value": entry.value,
        "createRevision": str(entry.create_revision),
        "modRevision": str(entry.mod_revision),
        "lease": str(entry.lease),
    }
    return {
        "name": name,
        "answer": answer,
        "succeeded": outcome.succeeded,
        "entry": read_entry,
        "revision": str(outcome.revision),
    }


def permissions() -> dict[str, Any]:
    """Return keys of permissions, and the names and ids of the unique maps that belong to them."""
    refs = [
        PermissionRef(CALLER.account_id, CONTRACT, "greet"),
        PermissionRef(CALLER.account_id, CONTRACT, "greet", "blue"),
        PermissionRef(CALLER.account_id, CONTRACT, "room:read:all"),
        PermissionRef(OTHER.account_id, CONTRACT, "room:read", "blue:1"),
    ]
    return {
        "group": GROUP,
        "keys": [
            {
                "account": ref.account,
                "contract": ref.contract,
                "permission": ref.name,
                "instanceId": ref.instance_id,
                "key": ref.key,
                "entryName": f"permission:{ref.key}",
                "entryId": _unique(f"permission:{ref.key}"),
            }
            for ref in refs
        ],
        "published": [
            {
                "account": account,
                "name": lookup.granted_permissions(account),
                "id": _unique(lookup.granted_permissions(account)),
            }
            for account in (CALLER.account_id, OTHER.account_id)
        ],
        "uniqueHeader": unique_header("comap", GROUP, refs[0].key).raw,
        "uniqueHeaderId": _unique(refs[0].key),
    }


def _unique(name: str) -> str:
    return unique_header("comap", GROUP, name).co_id


YES: Final = {"granted": True, "params": {}}
LOUD: Final = {"granted": True, "params": {"loud": True}}
NO: Final = {"granted": False, "params": {}}


def control_block() -> dict[str, Any]:
    """Return a control block, and entries with what follows from them."""
    ref = PermissionRef(CALLER.account_id, CONTRACT, "greet", "blue")
    members = {"identity": ref.contract, "name": ref.name, "account": ref.account, "instanceId": ref.instance_id}
    plain = {name: value for name, value in members.items() if name != "instanceId"}
    entries = [
        _entry("expected, not current", ref.key, {**members, "expected": YES}),
        _entry("in force", ref.key, {**members, "expected": LOUD, "current": LOUD}),
        _entry("other params", ref.key, {**members, "expected": LOUD, "current": YES}),
        _entry("revoked, not carried out", ref.key, {**members, "expected": NO, "current": YES}),
        _entry("revoked and carried out", ref.key, {**members, "expected": NO, "current": NO}),
        _entry("never granted", ref.key, {**members, "expected": NO}),
        _entry("params that are missing", ref.key, {**members, "expected": {"granted": True}, "current": YES}),
        _entry("without instance", ref.key.removesuffix(":blue"), {**plain, "expected": YES, "current": YES}),
        _entry("no expected grant", ref.key, {**members, "current": YES}),
        _entry("a malformed current grant", ref.key, {**members, "expected": YES, "current": {"granted": "true"}}),
        _entry("the key of another instance", ref.key, {**members, "instanceId": "red", "expected": YES}),
        _entry("the key of another account", ref.key, {**members, "account": OTHER.account_id, "expected": YES}),
        _entry("a member that is missing", ref.key, {**plain, "expected": YES, "current": YES}),
    ]
    return {
        "block": {
            "id": 7,
            "name": "greeter",
            "requirements": {"greeting": [CALLER.account_id], "rooms": [], "odd": "co_z", "mixed": [1, "co_zA"]},
            "permissions": "co_zhpjiaBcrHraLPycevF7Q9G2x3N",
            "externalEndpoint": None,
            "lockAccess": "co_zkSUPPK4JHN7jCVCo2ndpX5pyUG",
        },
        "requirements": {"greeting": [CALLER.account_id], "rooms": [], "mixed": ["co_zA"]},
        "entries": entries,
    }


def _entry(name: str, key: str, members: dict[str, Any]) -> dict[str, Any]:
    """Return an entry with its meaning, as docs/wire.md defines it; the test compares it with that of the code."""
    parts = [members.get("account"), members.get("identity"), members.get("name")]
    parts += [members["instanceId"]] if "instanceId" in members else []
    expected, current = Grant.parse(members.get("expected")), Grant.parse(members.get("current"))
    is_valid = ":".join(map(str, parts)) == key
    wants, has = bool(expected and expected.granted), bool(current and current.granted)
    same = wants == has and (not wants or expected == current)
    act = "revoked" if not wants else "updated" if has else "granted"
    return {
        "name": name,
        "key": key,
        "members": members,
        "valid": is_valid,
        "inForce": is_valid and wants and expected == current,
        "step": act if is_valid and not same else None,
        "stepIfNotImplemented": "revoked" if is_valid and has else None,
    }


STATUSES: Final = {
    "invalid-input": 400,
    "invalid-manifest": 400,
    "invalid-name": 400,
    "load-refused": 400,
    "unauthenticated": 401,
    "not-allowed": 403,
    "not-found": 404,
    "conflict": 409,
    "error": 500,
    "not-ready": 503,
    "not-serving": 503,
}


def rpc() -> dict[str, Any]:
    """Return paths, the statuses of codes, and what responses mean for the caller."""
    told = {"error": {"code": "conflict", "message": "it has changed"}}
    moved = {"error": {"code": "other-instance", "message": "another process"}, "instance": "Zm9vYmFyYmF6cXV4"}
    known = moved | {"agent": RECEIVER.agent_id}
    return {
        "paths": {
            "replica": "greeter",
            "contract": CONTRACT,
            "method": "greet",
            "rpc": rpc_path("greeter", CONTRACT, "greet"),
            "account": account_path("greeter"),
            "instance": "Zm9vYmFyYmF6cXV4",
            "signed": PATH,
            "liveness": LIVENESS_PATH,
            "readiness": READINESS_PATH,
            "metrics": "/metrics",
            "instanceHeader": INSTANCE_HEADER,
        },
        "statuses": STATUSES,
        "responses": [
            _response("a value", 200, {"message": "Hello"}, value={"message": "Hello"}),
            _response("null", 200, None, value=None),
            _response("an error", 409, told, code="conflict", message="it has changed"),
            _response("an unknown code", 418, {"error": {"code": "teapot", "message": "tea"}}, code="error"),
            _response("an error of a handler", 503, _body("not-ready"), code="not-ready"),
            _response("a receiver that starts", 503, _body("not-serving"), again=True),
            _response("another process", 421, moved, again=True, instance="Zm9vYmFyYmF6cXV4"),
            _response("another process and its agent", 421, known, again=True, instance="Zm9vYmFyYmF6cXV4"),
            _response("another process without a name", 421, _body("other-instance"), code="error"),
            _response("a proxy without a receiver", 502, "bad gateway", code="not-ready"),
            _response("a proxy that is overloaded", 503, {}, code="not-ready"),
            _response("a proxy that waited too long", 504, "timeout", code="not-ready"),
            _response("a server that is no replica", 404, {"detail": "not found"}, code="error"),
        ],
    }


def _body(code: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": "later"}}


def _response(name: str, status: int, body: Any, *, again: bool = False, **result: Any) -> dict[str, Any]:
    return {"name": name, "status": status, "body": body, "sentAgain": again, **result}


def profiles() -> dict[str, Any]:
    """Return members of profile maps, and what they say; null: it is not the profile of a replica."""
    data = "co_zhpjiaBcrHraLPycevF7Q9G2x3N"
    members = {
        "name": "greeter",
        "replicaId": 7,
        "endpoints": {"internal": "http://greeter", "external": "https://example.org"},
        "contracts": {CONTRACT: data, "registry.example/contracts/empty.v1": None},
        "inbox": "co_zAny",
    }
    read = {name: value for name, value in members.items() if name != "inbox"}
    return {
        "profiles": [
            {"name": "complete", "members": members, "profile": read},
            {
                "name": "without replica id and external endpoint",
                "members": {**members, "replicaId": None, "endpoints": {"internal": "http://greeter", "odd": 1}},
                "profile": {**read, "replicaId": None, "endpoints": {"internal": "http://greeter"}},
            },
            {"name": "the profile of a person", "members": {"name": "Ada"}, "profile": None},
            {"name": "no endpoints", "members": {**members, "endpoints": None}, "profile": None},
        ],
    }


FILES: Final[dict[str, Callable[[], dict[str, Any]]]] = {
    "tokens": tokens,
    "locks": locks,
    "permissions": permissions,
    "control_block": control_block,
    "rpc": rpc,
    "profiles": profiles,
}


def text_of(name: str) -> str:
    """Return the content of a file."""
    return json.dumps(FILES[name](), indent=1, ensure_ascii=False) + "\n"


def load(name: str) -> dict[str, Any]:
    """Return the vectors of a file."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def write(names: Iterable[str] = FILES) -> None:
    """Write the files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names:
        (FOLDER / f"{name}.json").write_text(text_of(name), encoding="utf-8")


if __name__ == "__main__":
    write()
