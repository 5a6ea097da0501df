"""Verification of request tokens by their receiver.

A bound token contains the agent of its account, and an account id is the hash of a header that contains only the agent.
So a bound token is verified without loading anything: a caller who has not proved its account costs two hashes and one
verification of a signature, or one agreement on a key.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from reside.jazz.errors import InvalidContent, JazzError, TokenRefused
from reside.jazz.groups.account import Credentials
from reside.jazz.ids import AccountId
from reside.jazz.node import Node, now_ms
from reside.jazz.tokens.form import BOUND, JAZZ, SHARED, Token, digest, parse, signed_text
from reside.jazz.tokens.replay import UsedTokens, UsedTokensInMemory
from reside.jazz.tokens.shared import account_of, is_code, shared_key
from reside.jazz.wire.crypto import Agent, secure_hash, verify
from reside.jazz.wire.encoding import stable_json

_WINDOW_S: Final = 60
_KNOWN: Final = 1_000
"""Agents that a verifier remembers."""
_LOAD_WITHIN_S: Final = 2.0
"""How long a token of the JavaScript form may wait for the header of its account."""


async def verify_jazz_token(node: Node, header: str | None, *, now_ms: int, window_s: int = _WINDOW_S) -> AccountId:
    """Verify a token of the JavaScript form and return the account that made it.

    Raises:
        TokenRefused: it is malformed, too old, from the future, or not signed by the account.
    """
    token = parse(header, JAZZ)
    _check_time(token, now_ms, window_s)
    text = stable_json(secure_hash({"id": token.account_id, "createdAt": token.created_ms}))
    _check_signature(token, text, await _load_agent(node, token.account_id))
    return token.account_id


def read_request_account(header: str | None) -> AccountId:
    """Return the account that a bound or shared token names, without verification. Use it only for logs and look-ups.

    Raises:
        TokenRefused: it is malformed.
    """
    return parse(header, BOUND, SHARED).account_id


@dataclass(frozen=True)
class _Known:
    """What follows from an agent that has proved its account, so it stays true: its account, and the shared key."""

    account_id: str
    key: bytes | None = field(default=None, repr=False)


class RequestVerifier:
    """Verify bound and shared tokens and refuse a second use of each.

    Args:
        me: the receiver's account; tokens for others are refused.
        window_s: maximum age of a token, and maximum lead of the caller's clock, in seconds.
        clock: returns ms since the epoch.
        used: the record of used tokens; None keeps one in this process and refuses tokens made before `since_ms`.
        since_ms: when this receiver's process started, in ms since the epoch; its predecessor accepted no token made
            later. None takes the time at which the verifier is created.
        credentials: those of the receiver, for the shared form; None: it is refused.
    """

    def __init__(
        self,
        me: AccountId,
        window_s: int = _WINDOW_S,
        *,
        clock: Callable[[], int] = now_ms,
        used: UsedTokens | None = None,
        since_ms: int | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self._me = me
        self._agent = credentials._agent if credentials is not None else None
        self._window_s = window_s
        self._clock = clock
        self._used = used if used is not None else UsedTokensInMemory()
        began = self._clock() if since_ms is None else since_ms
        self._earliest_ms = 0 if self._used.persistent else began
        self._known: dict[str, _Known] = {}

    async def verify(self, header: str | None, *, method: str, path: str, body: bytes) -> AccountId:
        """Verify that a token is valid for exactly this request and was not used; return the account that made it.

        Raises:
            TokenRefused: `reason` says why; the message never contains the token.
        """
        token = parse(header, BOUND) if self._agent is None else parse(header, BOUND, SHARED)
        self._check_time(token)
        if token.receiver != self._me:
            raise TokenRefused("receiver", f"it was made for another receiver than {self._me}")
        if token.method != method.upper():
            raise TokenRefused("method", f"it was made for another method than {method.upper()}")
        if token.path_hash != digest(path.encode()):
            raise TokenRefused("path", "it was made for another path")
        if token.body_hash != digest(body):
            raise TokenRefused("body", "it was made for another body")
        known = self._known.get(token.agent_id)
        if (account_of(token.agent_id) if known is None else known.account_id) != token.account_id:
            raise TokenRefused("account", "its agent is not the agent of its account")
        if self._agent is not None and token.scheme == SHARED:
            self._remember(token, _Known(token.account_id, _check_code(token, self._agent, known)))
        else:
            _check_signature(token, signed_text(token), token.agent_id)
            self._remember(token, known or _Known(token.account_id))
        until_ms = token.created_ms + self._window_s * 1000
        key = f"{token.account_id}~{token.nonce}"
        if not await self._used.use(key, until_ms=until_ms, now_ms=self._clock()):
            raise TokenRefused("reused", "it was used before")
        return token.account_id

    def _remember(self, token: Token, known: _Known) -> None:
        """Remember an agent that has proved its account, so strangers without a key fill nothing."""
        if token.agent_id not in self._known and len(self._known) >= _KNOWN:
            del self._known[next(iter(self._known))]
        self._known[token.agent_id] = known

    def _check_time(self, token: Token) -> None:
        _check_time(token, self._clock(), self._window_s)
        if token.created_ms < self._earliest_ms:
            raise TokenRefused("restarted", "it was made before this receiver started; make a new one and try again")


def _check_time(token: Token, now_ms: int, window_s: int) -> None:
    if now_ms - token.created_ms > window_s * 1000:
        raise TokenRefused("expired", f"it is older than {window_s} s; make a new one, and compare the clocks")
    if token.created_ms - now_ms > window_s * 1000:
        raise TokenRefused("future", f"it is more than {window_s} s ahead of this clock; compare the clocks")


async def _load_agent(node: Node, account_id: AccountId) -> str:
    """Return the agent id of an account."""
    try:
        await node._host.load_header(account_id, timeout=_LOAD_WITHIN_S)
    except JazzError as error:
        raise TokenRefused("account", f"its account can't be loaded: {error}") from error
    agent_id = node._host.store.agent_of(account_id)
    if agent_id is None:
        raise TokenRefused("account", "its account does not exist, or is not an account")
    return agent_id


def _check_signature(token: Token, text: str, agent_id: str) -> None:
    if not verify(token.proof, text, agent_id.rpartition("/")[2]):
        raise TokenRefused("signature", "its signature is not one of the account over this request")


def _check_code(token: Token, agent: Agent, known: _Known | None) -> bytes:
    """Check the code of a shared token, and return its key."""
    try:
        key = (known and known.key) or shared_key(agent, token.agent_id)
    except InvalidContent:  # the sealer of its agent can't be used
        key = None
    if key is None or not is_code(token.proof, signed_text(token), key):
        raise TokenRefused("signature", "its code is not one of the account over this request")
    return key
