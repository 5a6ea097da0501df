"""Verification of request tokens by their receiver."""

from collections.abc import Callable
from typing import Final

from reside.jazz.errors import JazzError, TokenRefused
from reside.jazz.ids import AccountId
from reside.jazz.node import Node
from reside.jazz.tokens.form import BOUND, JAZZ, Token, digest, parse, signed_text
from reside.jazz.tokens.replay import UsedTokens, UsedTokensInMemory
from reside.jazz.wire.crypto import secure_hash, verify
from reside.jazz.wire.encoding import stable_json

_WINDOW_S: Final = 60


async def verify_jazz_token(node: Node, header: str | None, *, now_ms: int, window_s: int = _WINDOW_S) -> AccountId:
    """Verify a token of the JavaScript form and return the account that made it.

    Raises:
        TokenRefused: it is malformed, too old, from the future, or not signed by the account.
    """
    token = parse(header, JAZZ)
    _check_time(token, now_ms, window_s)
    text = stable_json(secure_hash({"id": token.account_id, "createdAt": token.created_ms}))
    await _check_signature(node, token, text)
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
        node: loads the callers' accounts.
        me: the receiver's account; tokens for others are refused.
        window_s: maximum age of a token, and maximum lead of the caller's clock, in seconds.
        clock: returns ms since the epoch; None takes the node's clock.
        used: the record of used tokens; None keeps one in this process and refuses tokens made before `since_ms`.
        since_ms: when this receiver's process started, in ms since the epoch; its predecessor accepted no token made
            later. None takes the time at which the verifier is created.
    """

    def __init__(
        self,
        node: Node,
        me: AccountId,
        window_s: int = _WINDOW_S,
        *,
        clock: Callable[[], int] | None = None,
        used: UsedTokens | None = None,
        since_ms: int | None = None,
    ) -> None:
        self._node = node
        self._me = me
        self._window_s = window_s
        self._clock = clock if clock is not None else node.now_ms
        self._used = used if used is not None else UsedTokensInMemory()
        began = self._clock() if since_ms is None else since_ms
        self._earliest_ms = 0 if self._used.persistent else began

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
        await _check_signature(self._node, token, signed_text(token))
        self._check_time(token)
        until_ms = token.created_ms + self._window_s * 1000
        key = f"{token.account_id}~{token.nonce}"
        if not await self._used.use(key, until_ms=until_ms, now_ms=self._clock()):
            raise TokenRefused("reused", "it was used before")
        return token.account_id

    def _check_time(self, token: Token) -> None:
        _check_time(token, self._clock(), self._window_s)
        if token.created_ms < self._earliest_ms:
            raise TokenRefused("restarted", "it was made before this receiver started; make a new one and try again")


def _check_time(token: Token, now_ms: int, window_s: int) -> None:
    if now_ms - token.created_ms > window_s * 1000:
        raise TokenRefused("expired", f"it is older than {window_s} s; make a new one, and compare the clocks")
    if token.created_ms - now_ms > window_s * 1000:
        raise TokenRefused("future", f"it is more than {window_s} s ahead of this clock; compare the clocks")


async def _check_signature(node: Node, token: Token, text: str) -> None:
    try:
        account = await node.load_account(token.account_id)
    except JazzError as error:
        raise TokenRefused("account", f"its account can't be loaded: {error}") from error
    if not verify(token.signature, text, account.agent_id.rpartition("/")[2]):
        raise TokenRefused("signature", "its signature is not one of the account over this request")
