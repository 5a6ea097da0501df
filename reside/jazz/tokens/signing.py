"""Signing of request tokens."""

import secrets
from typing import Final

from reside.jazz.groups.account import Credentials
from reside.jazz.ids import AccountId
from reside.jazz.tokens.form import BOUND, JAZZ, Token, digest, signed_text
from reside.jazz.wire.crypto import secure_hash
from reside.jazz.wire.encoding import stable_json

_NONCE_BYTES: Final = 16


def sign_jazz_token(credentials: Credentials, *, now_ms: int) -> str:
    """Return the Authorization header of the JavaScript form, which can be replayed: for JavaScript receivers only."""
    text = stable_json(secure_hash({"id": credentials.account_id, "createdAt": now_ms}))
    signature = credentials._agent.sign(text)
    return f"{JAZZ}{signature}~{credentials.account_id}~{now_ms}"


def sign_request(
    credentials: Credentials,
    *,
    receiver: AccountId,
    method: str,
    path: str,
    body: bytes,
    now_ms: int,
    nonce: str | None = None,
) -> str:
    """Return the Authorization header of the bound form.

    Args:
        credentials: those of the caller.
        receiver: the only account that accepts the token.
        method: HTTP method.
        path: path with query, as in the request line.
        body: the bytes of the body; empty if there is none.
        now_ms: the caller's clock, ms since the epoch.
        nonce: random text that is never reused; None generates one.
    """
    nonce = nonce if nonce is not None else secrets.token_urlsafe(_NONCE_BYTES)
    agent = credentials._agent
    token = Token(
        signature="",
        account_id=credentials.account_id,
        created_ms=now_ms,
        agent_id=agent.agent_id,
        nonce=nonce,
        receiver=receiver,
        method=method.upper(),
        path_hash=digest(path.encode()),
        body_hash=digest(body),
    )
    signature = agent.sign(signed_text(token))
    return BOUND + "~".join([signature, *token.fields()])
