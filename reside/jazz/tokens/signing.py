"""Signing of request tokens."""

import secrets
from typing import Final

from reside.jazz.groups.account import Credentials
from reside.jazz.ids import AccountId
from reside.jazz.tokens.form import BOUND, JAZZ, SHARED, Token, digest, signed_text
from reside.jazz.tokens.shared import code_of, remembered_key
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
    receiver_agent_id: str | None = None,
) -> str:
    """Return the Authorization header of the bound form, or of the shared one if the receiver's agent is known.

    Args:
        credentials: those of the caller.
        receiver: the only account that accepts the token.
        method: HTTP method.
        path: path with query, as in the request line.
        body: the bytes of the body; empty if there is none.
        now_ms: the caller's clock, ms since the epoch.
        nonce: 1 to 64 characters of `A-Z a-z 0-9 _ -`, never used before; None generates one.
        receiver_agent_id: agent of the receiver's account (`can_share`), for the shared form.

    Raises:
        InvalidContent: `receiver_agent_id` is malformed, or can't be used.
    """
    nonce = nonce if nonce is not None else secrets.token_urlsafe(_NONCE_BYTES)
    agent = credentials._agent
    token = Token(
        scheme=BOUND if receiver_agent_id is None else SHARED,
        proof="",
        account_id=credentials.account_id,
        created_ms=now_ms,
        agent_id=agent.agent_id,
        nonce=nonce,
        receiver=receiver,
        method=method.upper(),
        path_hash=digest(path.encode()),
        body_hash=digest(body),
    )
    text = signed_text(token)
    key = None if receiver_agent_id is None else remembered_key(agent, receiver_agent_id)
    proof = agent.sign(text) if key is None else code_of(text, key)
    return token.scheme + "~".join([proof, *token.fields()])
