"""Signed rubbish: any session name, header, time, author, key and value, as far as it can be sent and signed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from reside.jazz.wire.crypto import Agent, new_agent_secret
from reside.jazz.wire.header import account_header

if TYPE_CHECKING:
    from interop.strangers.stranger import Stranger

UNKNOWN = account_header(Agent.from_secret(new_agent_secret()).agent_id).co_id
ROLES = ["admin", "manager", "writer", "reader", "writeOnly", "revoked", "adminInvite", "writerInvite", "superadmin"]

texts = st.text(st.characters(codec="utf-8"), max_size=12)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
times = st.one_of(
    st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**31, 2**53 - 1, 2**53, 2**53 + 2, 2**63, 2**64 - 1])
)


@dataclass(frozen=True)
class Places:
    """The ids of the honest values and accounts.

    Attributes:
        targets: what strangers write to: map, group, account and profile of the owner.
        ids: what they may name.
    """

    targets: list[str]
    ids: list[str]


def _keys(ids: list[str]) -> st.SearchStrategy[str]:
    named = st.sampled_from([*ids, "everyone", UNKNOWN])
    return st.one_of(
        texts,
        named,
        st.sampled_from(["x", "readKey", "groupSealer", "profile", "root", "constructor", "__proto__", "toString"]),
        st.builds("{}{}".format, st.sampled_from(["parent_", "child_", "writeKeyFor_", "key_z1_for_"]), named),
        st.builds("key_z{}_for_key_z{}".format, st.integers(0, 2), st.integers(0, 2)),
    )


def _changes(ids: list[str]) -> st.SearchStrategy[str]:
    change = st.fixed_dictionaries(
        {"op": st.sampled_from(["set", "del", "app", "pre", "unknown"]) | texts},
        optional={"key": _keys(ids), "value": st.sampled_from([*ROLES, *ids]) | json_values, "after": json_values},
    )
    return st.one_of(
        st.lists(change | json_values, max_size=3).map(json.dumps), json_values.map(json.dumps), texts, st.just("[")
    )


def transactions(ids: list[str]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Return a strategy for the transactions of one session."""
    shared = {"madeAt": times}
    optional = {"meta": texts | json_values.map(json.dumps), "extra": json_values}
    trusting = st.fixed_dictionaries(
        {"privacy": st.just("trusting"), "changes": _changes(ids)} | shared, optional=optional
    )
    private = st.fixed_dictionaries(
        {
            "privacy": st.just("private"),
            "encryptedChanges": texts.map("encrypted_U{}".format) | texts,
            "keyUsed": texts.map("key_z{}".format) | texts,
        }
        | shared,
        optional=optional,
    )
    return st.lists(trusting | private, min_size=1, max_size=3)


def headers(ids: list[str]) -> st.SearchStrategy[dict[str, Any] | None]:
    """Return a strategy for headers: mostly none, else of values in groups of others, or of groups."""
    owned = st.builds(lambda group: {"type": "ownedByGroup", "group": group}, st.sampled_from([*ids, UNKNOWN]))
    group = st.just({"type": "group", "initialAdmin": "STRANGER"})
    raw = st.fixed_dictionaries(
        {
            "type": st.sampled_from(["comap", "colist", "costream", "coplaintext"]) | texts,
            "ruleset": owned | group,
            "meta": st.none() | st.dictionaries(texts, json_values, max_size=2),
            "createdAt": st.none() | texts,
            "uniqueness": st.none() | texts | st.booleans() | st.integers(-(2**53), 2**53),
        },
        optional={"extra": json_values},
    )
    return st.none() | st.none() | raw


def _plain(text: str) -> str:
    return text.replace("{", "").replace("}", "")


sessions = st.one_of(
    st.just("{author}_session_z{tail}"),
    texts.map(lambda text: f"{{author}}_session{_plain(text)}{{tail}}"),
    texts.map(lambda text: f"sealer_{_plain(text).replace('/', '')}/{{signer}}_session_z{{tail}}"),
    st.just("{account}_session_z{tail}"),
    st.just(f"{UNKNOWN}_session_z1"),
)


def session_of(who: Stranger, template: str, account: str, tail: str) -> str:
    """Return the session id of a template of `sessions`."""
    return template.format(author=who.author, signer=who.agent.signer_id, account=account, tail=tail)
