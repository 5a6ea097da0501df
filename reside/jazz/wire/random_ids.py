"""Random parts of headers and of session ids (docs/jazz-protocol.md, section 1)."""

import secrets
from typing import Final

from reside.jazz.ids import SessionId
from reside.jazz.wire.encoding import b58encode

_RANDOM_ID_BYTES: Final = 12
_SESSION_BYTES: Final = 8
_DELETE_SESSION_BYTES: Final = 7


def new_uniqueness() -> str:
    """Return a random `uniqueness` for a new header."""
    return "z" + b58encode(secrets.token_bytes(_RANDOM_ID_BYTES))


def new_session_tail() -> str:
    """Return a random end of a session id. Each process needs a new one: a session has exactly one writer."""
    return "_session_z" + b58encode(secrets.token_bytes(_SESSION_BYTES))


def new_delete_session(account_id: str) -> SessionId:
    """Return a new session for the transaction that deletes a value."""
    return SessionId(f"{account_id}_session_d{b58encode(secrets.token_bytes(_DELETE_SESSION_BYTES))}$")
