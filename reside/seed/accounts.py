"""Phase 2: create the accounts of Alpha and the Sentinel.

Invariants: existing Secrets are never replaced; a Secret is written before its account is published in Jazz. So an
interrupted run never leaves an account without a stored secret, and a later run finds the same Alpha, even without
Pulumi's state.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import SecretStr

from reside.access.client import connect
from reside.access.objects import read_secret
from reside.jazz import Credentials
from reside.model.constants import (
    ACCOUNT_ID_KEY,
    AGENT_SECRET_KEY,
    ALPHA_NAME,
    ENGINE_SECRET,
    ENGINE_SECRET_KEY,
    SENTINEL_NAME,
)
from reside.model.errors import NotReady
from reside.seed import platform
from reside.seed.kubernetes import ensure_secret

if TYPE_CHECKING:
    import lightkube

    from reside.access.target import Target


@dataclass(frozen=True)
class Identities:
    """Credentials of Alpha and the Sentinel, and the passphrase of the Sentinel's engine."""

    alpha: Credentials
    sentinel: Credentials
    engine_passphrase: SecretStr


async def ensure_identities(target: Target) -> Identities:
    """Read the Secrets of phase 2; create those that are missing."""
    async with connect(target) as client:
        alpha = await _account(client, target.namespace, ALPHA_NAME)
        sentinel = await _account(client, target.namespace, SENTINEL_NAME)
        engine_secret = platform.secret(ENGINE_SECRET, target.namespace, {ENGINE_SECRET_KEY: _random()})
        engine = await ensure_secret(client, engine_secret)
        claim = platform.claim_secret(target.namespace, _random())
        await ensure_secret(client, claim)
    return Identities(alpha, sentinel, SecretStr(engine[ENGINE_SECRET_KEY]))


async def read_identities(target: Target) -> Identities:
    """Read the Secrets of phase 2.

    Raises:
        NotReady: one of them is missing.
    """
    found: dict[str, dict[str, str]] = {}
    async with connect(target) as client:
        for name in (ALPHA_NAME, SENTINEL_NAME, ENGINE_SECRET):
            values = await read_secret(client, name)
            if values is None:
                raise NotReady(
                    f"Secret {name} is missing in namespace {target.namespace}, although phase Accounts is complete: "
                    "the state belongs to another cluster; remove it with `pulumi stack rm --force` and bootstrap again"
                )
            found[name] = values
    return Identities(
        Credentials.from_secret(found[ALPHA_NAME][AGENT_SECRET_KEY]),
        Credentials.from_secret(found[SENTINEL_NAME][AGENT_SECRET_KEY]),
        SecretStr(found[ENGINE_SECRET][ENGINE_SECRET_KEY]),
    )


async def _account(client: lightkube.AsyncClient, namespace: str, name: str) -> Credentials:
    generated = Credentials.generate()
    values = {ACCOUNT_ID_KEY: generated.account_id, AGENT_SECRET_KEY: generated.agent_secret}
    stored = await ensure_secret(client, platform.secret(name, namespace, values))
    return Credentials.from_secret(stored[AGENT_SECRET_KEY])


def _random() -> str:
    return secrets.token_urlsafe(24)
