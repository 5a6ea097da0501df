"""The key that two accounts share: both can compute it from the own secret and the other's agent, and nobody else can.

    key  = HMAC-SHA256(X25519(own sealer secret, other's sealer), "Jazz-Shared")
    code = HMAC-SHA256(key, text), in hexadecimal

A code proves to the receiver that the caller made the text, since the receiver itself is the only other one who could.
It proves nothing to third parties. X25519 is RFC 7748, HMAC is RFC 2104. Jazz seals messages with the same key pairs,
but derives its keys in another way (HSalsa20), so no code says anything about a sealed message.
"""

import hmac
from functools import lru_cache
from typing import Final

from reside.jazz.errors import InvalidContent
from reside.jazz.groups.account import Credentials
from reside.jazz.wire.crypto import Agent, agree
from reside.jazz.wire.header import account_header

_PURPOSE: Final = b"Jazz-Shared"


def shared_key(agent: Agent, other_agent_id: str) -> bytes:
    """Return the key that an agent shares with another one.

    Raises:
        InvalidContent: the id of the other agent is malformed, or its sealer is a point of low order.
    """
    sealer_id, slash, _ = other_agent_id.partition("/")
    if not slash:
        raise InvalidContent("an agent id has no signer")
    return hmac.digest(agree(agent.sealer_key, sealer_id), _PURPOSE, "sha256")


remembered_key = lru_cache(maxsize=1_024)(shared_key)
"""`shared_key` for callers, who choose the other side: it remembers the last keys."""


def code_of(text: str, key: bytes) -> str:
    """Return the authentication code of a text, in hexadecimal."""
    return hmac.digest(key, text.encode(), "sha256").hex()


def is_code(code: str, text: str, key: bytes) -> bool:
    """Return whether this is the code of a text, in a time that does not depend on the code."""
    return code.isascii() and hmac.compare_digest(code, code_of(text, key))


def account_of(agent_id: str) -> str | None:
    """Return the id of an agent's account; None if the text is not an agent id."""
    try:
        return account_header(agent_id).co_id
    except InvalidContent:
        return None


def can_share(credentials: Credentials, agent_id: str, account_id: str) -> bool:
    """Return whether `sign_request` can use this agent: it is the one of the account, and its sealer is usable.

    The id of an account is a hash of its agent, so it does not matter who names the agent.
    """
    if account_of(agent_id) != account_id:
        return False
    try:
        remembered_key(credentials._agent, agent_id)
    except InvalidContent:
        return False
    return True
