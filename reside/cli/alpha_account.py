"""Ask a cluster's domain which account is its Alpha's.

Everybody can reach Jazz and publish an account there, so what tells Alpha's is the certificate of the domain: only who
serves it can answer. No redirect is followed, because it would name another server.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Final

import httpx2
from pydantic import BaseModel, StringConstraints, ValidationError

from reside.common.tls import trusted_authorities
from reside.jazz import AccountId
from reside.model.constants import ALPHA_NAME
from reside.model.endpoints import account_path
from reside.model.errors import NotReady

ACCOUNT_ID: Final = r"^co_z[1-9A-HJ-NP-Za-km-z]+$"
_LARGEST: Final = 4096
"""Bytes of an answer."""
_TIMEOUT_S: Final = 15.0


UNREACHABLE_CURE: Final = "check the name, the network, and SSL_CERT_FILE for an own authority"
"""What to do if a domain can't be reached."""


class _Answer(BaseModel):
    account: Annotated[str, StringConstraints(pattern=ACCOUNT_ID, max_length=100)]


async def ask_for_alpha(endpoint: str) -> AccountId:
    """Return the account of the Alpha that a domain serves.

    Args:
        endpoint: `https://HOST[:PORT]`.

    Raises:
        NotReady: the domain can't be reached, its certificate is not trusted, or it does not name an account.
    """
    hint = "or name the account with --alpha"
    try:
        async with httpx2.AsyncClient(
            verify=trusted_authorities(), trust_env=False, timeout=_TIMEOUT_S, follow_redirects=False
        ) as http:
            status, content = await _read(http, f"{endpoint}{account_path(ALPHA_NAME)}")
    except httpx2.TransportError as error:
        raise NotReady(f"{endpoint} can't be reached: {error or type(error).__name__}: {UNREACHABLE_CURE}") from None
    if status != HTTPStatus.OK:
        raise NotReady(
            f"{endpoint} does not name the account of its Alpha (HTTP {status}): check the domain and whether Alpha "
            f"runs, {hint}"
        )
    try:
        return AccountId(_Answer.model_validate_json(content).account)
    except ValidationError:
        raise NotReady(f"{endpoint} does not serve a cluster of ReSide: check the domain, {hint}") from None


async def _read(http: httpx2.AsyncClient, url: str) -> tuple[int, bytes]:
    """Return status and content; content that is too long is cut."""
    content = b""
    async with http.stream("GET", url, headers={"accept-encoding": "identity"}) as response:
        async for piece in response.aiter_raw(_LARGEST):
            content += piece
            if len(content) > _LARGEST:
                break
    return response.status_code, content[:_LARGEST]
