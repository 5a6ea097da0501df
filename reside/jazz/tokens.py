"""Request tokens: an HTTP request that proves which account makes it.

Two forms. The JavaScript form (jazz-tools `generateAuthToken`) names account and time only: whoever receives one can
use it elsewhere for a minute. The bound form, for our own replicas, also covers receiver, method, path and body, and
its receiver refuses a second use (`replay` says how far that reaches).

    Authorization: Jazz <signature>~<account>~<ms>
    Authorization: Jazz-Bound <signature>~<account>~<ms>~<nonce>~<receiver>~<method>~<path hash>~<body hash>

The signature of the bound form covers all the other fields, so a refusal can say which of them does not fit.
"""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from .errors import JazzError, TokenRefused
from .ids import AccountId
from .replay import UsedTokens, UsedTokensInMemory
from .wire.crypto import Agent, secure_hash, verify
from .wire.encoding import stable_json

if TYPE_CHECKING:
    from .groups.account import Credentials
    from .node import Node

_JAZZ: Final = "Jazz "
_BOUND: Final = "Jazz-Bound "
_WINDOW_S: Final = 60
_NONCE_BYTES: Final = 16
_MAX_HEADER_CHARACTERS: Final = 1024
_MAX_NONCE_CHARACTERS: Final = 64
_JAZZ_FIELDS: Final = 3
_FIELDS: Final = 8


@dataclass(frozen=True)
class _Token:
    signature: str = field(repr=False)
    account_id: AccountId
    created_ms: int
    nonce: str = ""
    receiver: str = ""
    method: str = ""
    path_hash: str = ""
    body_hash: str = ""

    def fields(self) -> list[str]:
        """What the signature of the bound form covers, as it stands in the header."""
        created = str(self.created_ms)
        return [self.account_id, created, self.nonce, self.receiver, self.method, self.path_hash, self.body_hash]


def sign_jazz_token(credentials: "Credentials", *, now_ms: int) -> str:
    """The Authorization header of the JavaScript form; for JavaScript receivers only, because it can be replayed."""
    text = stable_json(secure_hash({"id": credentials.account_id, "createdAt": now_ms}))
    signature = Agent.from_secret(credentials.agent_secret).sign(text)
    return f"{_JAZZ}{signature}~{credentials.account_id}~{now_ms}"


async def verify_jazz_token(node: "Node", header: str | None, *, now_ms: int, window_s: int = _WINDOW_S) -> AccountId:
    """The account that made a token of the JavaScript form.

    Raises:
        TokenRefused: It is malformed, too old, from the future, or not signed by the account.
    """
    token = _parse(header, _JAZZ)
    _check_time(token, now_ms, window_s)
    text = stable_json(secure_hash({"id": token.account_id, "createdAt": token.created_ms}))
    await _check_signature(node, token, text)
    return token.account_id


def sign_request(
    credentials: "Credentials",
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
    token = _Token(
        "", credentials.account_id, now_ms, nonce, receiver, method.upper(), _hash(path.encode()), _hash(body)
    )
    signature = Agent.from_secret(credentials.agent_secret).sign(_signed_text(token))
    return _BOUND + "~".join([signature, *token.fields()])


def read_request_account(header: str | None) -> AccountId:
    """The account that a bound token claims; nothing is verified. For logs and look-ups.

    Raises:
        TokenRefused: It is malformed.
    """
    return _parse(header, _BOUND).account_id


class RequestVerifier:
    """Checks bound tokens, and remembers those of the last window so that none is used twice.

    Args:
        node: Loads the callers' accounts.
        me: The receiver; tokens for others are refused.
        window_s: How old a token may be, and how far ahead the caller's clock.
        clock: Gives ms since the epoch; None takes the node's.
        used: Remembers; None remembers in this process only, and refuses what was made before `since_ms`.
        since_ms: When this receiver's process began, in ms since the epoch: its predecessor took no token made later.
            None takes the time at which this verifier is made.
    """

    def __init__(
        self,
        node: "Node",
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
        self._earliest_ms = 0 if self._used.lasts else began

    async def verify(self, header: str | None, *, method: str, path: str, body: bytes) -> AccountId:
        """The account that made this request, exactly this one, for us, now, for the first time.

        Raises:
            TokenRefused: `reason` says why; the message never contains the token.
        """
        token = _parse(header, _BOUND)
        self._check_time(token)
        if token.receiver != self._me:
            raise TokenRefused("receiver", f"it was made for another receiver than {self._me}")
        if token.method != method.upper():
            raise TokenRefused("method", f"it was made for another method than {method.upper()}")
        if token.path_hash != _hash(path.encode()):
            raise TokenRefused("path", "it was made for another path")
        if token.body_hash != _hash(body):
            raise TokenRefused("body", "it was made for another body")
        await _check_signature(self._node, token, _signed_text(token))
        self._check_time(token)
        until_ms = token.created_ms + self._window_s * 1000
        key = f"{token.account_id}~{token.nonce}"
        if not await self._used.use(key, until_ms=until_ms, now_ms=self._clock()):
            raise TokenRefused("reused", "it was used before")
        return token.account_id

    def _check_time(self, token: _Token) -> None:
        _check_time(token, self._clock(), self._window_s)
        if token.created_ms < self._earliest_ms:
            raise TokenRefused("restarted", "it was made before this receiver started; make a new one and try again")


def _parse(header: str | None, scheme: str) -> _Token:
    if not header:
        raise TokenRefused("missing", "the request has no Authorization header")
    if not header.startswith(scheme) or len(header) > _MAX_HEADER_CHARACTERS:
        raise TokenRefused("malformed", f"the Authorization header is not of the form {scheme}…, or too long")
    fields = header[len(scheme) :].split("~")
    if len(fields) != (_FIELDS if scheme == _BOUND else _JAZZ_FIELDS):
        raise TokenRefused("malformed", "it has too few or too many fields")
    signature, account_id, created, *rest = fields
    if not created.isascii() or not created.isdigit() or not account_id.startswith("co_z"):
        raise TokenRefused("malformed", "it names no account or no time")
    if rest and not 0 < len(rest[0]) <= _MAX_NONCE_CHARACTERS:
        raise TokenRefused("malformed", f"its nonce is empty or longer than {_MAX_NONCE_CHARACTERS} characters")
    return _Token(signature, AccountId(account_id), int(created), *rest)


def _check_time(token: _Token, now_ms: int, window_s: int) -> None:
    if now_ms - token.created_ms > window_s * 1000:
        raise TokenRefused("expired", f"it is older than {window_s} s; make a new one, and compare the clocks")
    if token.created_ms - now_ms > window_s * 1000:
        raise TokenRefused("future", f"it is more than {window_s} s ahead of this clock; compare the clocks")


def _signed_text(token: _Token) -> str:
    return stable_json([_BOUND.strip(), *token.fields()])


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def _check_signature(node: "Node", token: _Token, text: str) -> None:
    try:
        account = await node.load_account(token.account_id)
    except JazzError as error:
        raise TokenRefused("account", f"its account can't be loaded: {error}") from error
    if not verify(token.signature, text, account.agent_id.rpartition("/")[2]):
        raise TokenRefused("signature", "its signature is not one of the account over this request")
