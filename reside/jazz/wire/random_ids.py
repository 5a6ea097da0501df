"""Ids made anew: random parts of headers and of sessions (docs/jazz-protocol.md, section 1)."""

import secrets
from typing import Final

from reside.jazz.ids import SessionId
from reside.jazz.wire.encoding import b58encode

_RANDOM_ID_BYTES: Final = 12
_SESSION_BYTES: Final = 8
_DELETE_SESSION_BYTES: Final = 7


def new_uniqueness() -> str:
    """A random `uniqueness` of a fresh header."""
    return "z" + b58encode(secrets.token_bytes(_RANDOM_ID_BYTES))


def new_session_tail() -> str:
    """The random end of session ids; a process start takes a new one, because a session has one writer for ever."""
    return "_session_z" + b58encode(secrets.token_bytes(_SESSION_BYTES))


def new_delete_session(account_id: str) -> SessionId:
    """A fresh session for the one transaction that deletes a value."""
    return SessionId(f"{account_id}_session_d{b58encode(secrets.token_bytes(_DELETE_SESSION_BYTES))}$")
