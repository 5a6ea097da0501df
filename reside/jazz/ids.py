"""Identifiers of the protocol: their prefixes and how they are made (jazz-protocol.md §1)."""

import re
import secrets
from typing import Any, Literal, NewType, TypeAlias

from .wire.encoding import b58encode

CoId = NewType("CoId", str)
"""Id of any value, `co_z…`."""
AccountId = NewType("AccountId", str)
"""Id of an account, `co_z…`; the account's own value has the same id."""
SessionId = NewType("SessionId", str)
"""Id of one writer's log, `<account or agent>_session_z…`."""

AgentId = NewType("AgentId", str)
"""A member without an account, `sealer_z…/signer_z…`: the public keys themselves."""

Json: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list or dict with str keys."""

Role: TypeAlias = Literal[
    "admin",
    "manager",
    "writer",
    "reader",
    "writeOnly",
    "adminInvite",
    "managerInvite",
    "writerInvite",
    "readerInvite",
    "writeOnlyInvite",
]
"""A member's role in a group; `revoked` is shown as None."""

Everyone: TypeAlias = Literal["everyone"]
EVERYONE: Everyone = "everyone"

_RANDOM_ID_BYTES = 12
_SESSION_BYTES = 8
_DELETE_SESSION_BYTES = 7


_BASE58 = "[1-9A-HJ-NP-Za-km-z]"
_CO_ID = re.compile(f"co_z{_BASE58}{{1,64}}")
_SESSION_ID = re.compile(f"(co_z{_BASE58}+|sealer_z{_BASE58}+/signer_z{_BASE58}+)_session_[a-z]{_BASE58}+[$]?")
_AGENT_ID = re.compile(f"sealer_z{_BASE58}+/signer_z{_BASE58}+")
_MAX_ID_CHARACTERS = 256


def is_co_id(text: object) -> bool:
    """Whether something has the form of a value's id; everything from outside is asked this before it is used."""
    return isinstance(text, str) and _CO_ID.fullmatch(text) is not None


def is_agent_id(text: object) -> bool:
    """Whether something has the form of an agent id."""
    return isinstance(text, str) and len(text) <= _MAX_ID_CHARACTERS and _AGENT_ID.fullmatch(text) is not None


def is_session_id(text: str) -> bool:
    """Whether a text has the form of a session id."""
    return len(text) <= _MAX_ID_CHARACTERS and _SESSION_ID.fullmatch(text) is not None


def new_uniqueness() -> str:
    """A random `uniqueness` of a fresh header."""
    return "z" + b58encode(secrets.token_bytes(_RANDOM_ID_BYTES))


def new_session_tail() -> str:
    """The random end of session ids; a process start takes a new one, because a session has one writer for ever."""
    return "_session_z" + b58encode(secrets.token_bytes(_SESSION_BYTES))


def new_delete_session(account_id: str) -> SessionId:
    """A fresh session for the one transaction that deletes a value."""
    return SessionId(f"{account_id}_session_d{b58encode(secrets.token_bytes(_DELETE_SESSION_BYTES))}$")


def is_delete_session(session: str) -> bool:
    """Whether a session is one that deletes its value."""
    return session.endswith("$")


def author_of(session_id: str) -> str:
    """The account id or agent id that writes a session."""
    return session_id.split("_session", 1)[0]


def is_account_id(author: str) -> bool:
    """Whether an author or a member key is an account (and not an agent, a key or `everyone`)."""
    return author.startswith("co_")
