"""Verification of request tokens by their receiver.

A bound token contains the agent of its account, and an account id is the hash of a header that contains only the agent.
So a bound token is verified without loading anything: a caller who has not proved its account costs two hashes and one
verification of a signature.
"""

from collections.abc import Callable
from typing import Final

from reside.jazz.errors import InvalidContent, JazzError, TokenRefused
from reside.jazz.ids import AccountId
from reside.jazz.node import Node, now_ms
from reside.jazz.tokens.form import BOUND, JAZZ, Token, digest, parse, signed_text
from reside.jazz.tokens.replay import UsedTokens, UsedTokensInMemory
from reside.jazz.wire.crypto import secure_hash, verify
from reside.jazz.wire.encoding import stable_json
from reside.jazz.wire.header import account_header

_WINDOW_S: Final = 60
_KNOWN: Final = 1_000
"""Agents whose accounts a verifier remembers. An account follows from its agent, so what it remembers stays true."""
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
    """Return the account that a bound token names, without verification. Use it only for logs and look-ups.

    Raises:
        TokenRefused: it is malformed.
    """
    return parse(header, BOUND).account_id


class RequestVerifier:
    """Verify bound tokens and refuse a second use of each.

    Args:
        me: the receiver's account; tokens for others are refused.
        window_s: maximum age of a token, and maximum lead of the caller's clock, in seconds.
        clock: returns ms since the epoch.
        used: the record of used tokens; None keeps one in this process and refuses tokens made before `since_ms`.
        since_ms: when this receiver's process started, in ms since the epoch; its predecessor accepted no token made
            later. None takes the time at which the verifier is created.
    """

    def __init__(
        self,
        me: AccountId,
        window_s: int = _WINDOW_S,
        *,
        clock: Callable[[], int] = now_ms,
        used: UsedTokens | None = None,
        since_ms: int | None = None,
    ) -> None:
        self._me = me
        self._window_s = window_s
        self._clock = clock
        self._used = used if used is not None else UsedTokensInMemory()
        began = self._clock() if since_ms is None else since_ms
        self._earliest_ms = 0 if self._used.persistent else began
        self._accounts: dict[str, str] = {}

    async def verify(self, header: str | None, *, method: str, path: str, body: bytes) -> AccountId:
        """Verify that a token is valid for exactly this request and was not used; return the account that made it.

        Raises:
            TokenRefused: `reason` says why; the message never contains the token.
        """
        token = parse(header, BOUND)
        self._check_time(token)
        if token.receiver != self._me:
            raise TokenRefused("receiver", f"it was made for another receiver than {self._me}")
        if token.method != method.upper():
            raise TokenRefused("method", f"it was made for another method than {method.upper()}")
        if token.path_hash != digest(path.encode()):
            raise TokenRefused("path", "it was made for another path")
        if token.body_hash != digest(body):
            raise TokenRefused("body", "it was made for another body")
        known = self._accounts.get(token.agent_id)
        if (known or _account_of(token.agent_id)) != token.account_id:
            raise TokenRefused("account", "its agent is not the agent of its account")
        _check_signature(token, signed_text(token), token.agent_id)
        if known is None:
            self._remember(token)
        until_ms = token.created_ms + self._window_s * 1000
        key = f"{token.account_id}~{token.nonce}"
        if not await self._used.use(key, until_ms=until_ms, now_ms=self._clock()):
            raise TokenRefused("reused", "it was used before")
        return token.account_id

    def _remember(self, token: Token) -> None:
        """Remember the account of an agent that has signed a call, so strangers without a key fill nothing."""
        if len(self._accounts) >= _KNOWN:
            del self._accounts[next(iter(self._accounts))]
        self._accounts[token.agent_id] = token.account_id

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


def _account_of(agent_id: str) -> str | None:
    """Return the id of an agent's account; None if the text is not an agent id."""
    try:
        return account_header(agent_id).co_id
    except InvalidContent:
        return None


def _check_signature(token: Token, text: str, agent_id: str) -> None:
    if not verify(token.signature, text, agent_id.rpartition("/")[2]):
        raise TokenRefused("signature", "its signature is not one of the account over this request")
