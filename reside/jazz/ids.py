"""Identifiers of the protocol: their types and formats (docs/jazz-protocol.md, section 1)."""

import re
from typing import Any, Literal, NewType, TypeAlias

CoId = NewType("CoId", str)
"""Id of any value, `co_z…`."""
AccountId = NewType("AccountId", str)
"""Id of an account, `co_z…`; the account's own value has the same id."""
SessionId = NewType("SessionId", str)
"""Id of one writer's log, `<account or agent>_session_z…`."""

AgentId = NewType("AgentId", str)
"""Id of a member without an account: its public keys, `sealer_z…/signer_z…`."""

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
"""A member's role in a group; `revoked` is represented as None."""

Everyone: TypeAlias = Literal["everyone"]
EVERYONE: Everyone = "everyone"

_BASE58 = "[1-9A-HJ-NP-Za-km-z]"
_CO_ID = re.compile(f"co_z{_BASE58}{{1,64}}")
_SESSION_ID = re.compile(f"(co_z{_BASE58}{{1,64}}|sealer_[^/]*?/signer_z{_BASE58}+)_session.*", re.DOTALL)
_AGENT_ID = re.compile(f"sealer_z{_BASE58}+/signer_z{_BASE58}+")
_MAX_ID_CHARACTERS = 256


def is_co_id(text: object) -> bool:
    """Return whether an object has the format of a value's id. Check every id from outside before its first use."""
    return isinstance(text, str) and _CO_ID.fullmatch(text) is not None


def is_agent_id(text: object) -> bool:
    """Return whether an object has the format of an agent id."""
    return isinstance(text, str) and len(text) <= _MAX_ID_CHARACTERS and _AGENT_ID.fullmatch(text) is not None


def is_session_id(text: str) -> bool:
    """Return whether a text is a session id: an author, `_session`, and anything; servers accept every ending."""
    return len(text) <= _MAX_ID_CHARACTERS and _SESSION_ID.fullmatch(text) is not None and is_unicode(text)


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded in UTF-8: it contains no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_delete_session(session: str) -> bool:
    """Return whether a session deletes its value."""
    return session.endswith("$")


def author_of(session_id: str) -> str:
    """Return the account id or agent id that writes a session."""
    return session_id.split("_session", 1)[0]


def is_account_id(author: str) -> bool:
    """Return whether an author or a member key is an account, and not an agent, a key or `everyone`."""
    return author.startswith("co_")
