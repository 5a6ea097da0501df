"""Signing of request tokens."""

import secrets
from typing import Final

from reside.jazz.groups.account import Credentials
from reside.jazz.ids import AccountId
from reside.jazz.tokens.form import BOUND, JAZZ, Token, digest, signed_text
from reside.jazz.wire.crypto import Agent, secure_hash
from reside.jazz.wire.encoding import stable_json

_NONCE_BYTES: Final = 16


def sign_jazz_token(credentials: Credentials, *, now_ms: int) -> str:
    """The Authorization header of the JavaScript form; for JavaScript receivers only, because it can be replayed."""
    text = stable_json(secure_hash({"id": credentials.account_id, "createdAt": now_ms}))
    signature = Agent.from_secret(credentials.agent_secret).sign(text)
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
    """The Authorization header of the bound form.

    Args:
        credentials: Who makes the request.
        receiver: The account that will get it; no other accepts it.
        method: HTTP method.
        path: Path with query, as it stands in the request line.
        body: The body's bytes, empty for none.
        now_ms: The caller's clock, ms since the epoch.
        nonce: Random text that is never used again; None makes one.
    """
    nonce = nonce if nonce is not None else secrets.token_urlsafe(_NONCE_BYTES)
    token = Token(
        "", credentials.account_id, now_ms, nonce, receiver, method.upper(), digest(path.encode()), digest(body)
    )
    signature = Agent.from_secret(credentials.agent_secret).sign(signed_text(token))
    return BOUND + "~".join([signature, *token.fields()])
