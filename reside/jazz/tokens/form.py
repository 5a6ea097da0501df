"""The two forms of a request token in the Authorization header."""

import hashlib
from dataclasses import dataclass, field
from typing import Final

from reside.jazz.errors import TokenRefused
from reside.jazz.ids import AccountId
from reside.jazz.wire.encoding import quote

JAZZ: Final = "Jazz "
BOUND: Final = "Jazz-Bound "
_NAME: Final = BOUND.strip()
_MAX_HEADER_CHARACTERS: Final = 1024
_MAX_NONCE_CHARACTERS: Final = 64
_JAZZ_FIELDS: Final = 3
_FIELDS: Final = 9


@dataclass(frozen=True)
class Token:
    """The fields of a token. In the JavaScript form, the fields from `agent_id` on are empty."""

    signature: str = field(repr=False)
    account_id: AccountId
    created_ms: int
    agent_id: str = ""
    nonce: str = ""
    receiver: str = ""
    method: str = ""
    path_hash: str = ""
    body_hash: str = ""

    def fields(self) -> list[str]:
        """Return the fields that the signature of the bound form covers, in the order of the header."""
        about = [self.account_id, str(self.created_ms), self.agent_id, self.nonce]
        return [*about, self.receiver, self.method, self.path_hash, self.body_hash]


def parse(header: str | None, scheme: str) -> Token:
    """Parse the token in a header.

    Raises:
        TokenRefused: the header is missing or malformed.
    """
    if not header:
        raise TokenRefused("missing", "the request has no Authorization header")
    if not header.startswith(scheme) or len(header) > _MAX_HEADER_CHARACTERS:
        raise TokenRefused("malformed", f"the Authorization header is not of the form {scheme}…, or too long")
    fields = header[len(scheme) :].split("~")
    if len(fields) != (_FIELDS if scheme == BOUND else _JAZZ_FIELDS):
        raise TokenRefused("malformed", "it has too few or too many fields")
    signature, account_id, created, *rest = fields
    if not created.isascii() or not created.isdigit() or not account_id.startswith("co_z"):
        raise TokenRefused("malformed", "it contains no account id or no time")
    if rest and not 0 < len(rest[1]) <= _MAX_NONCE_CHARACTERS:
        raise TokenRefused("malformed", f"its nonce is empty or longer than {_MAX_NONCE_CHARACTERS} characters")
    return Token(signature, AccountId(account_id), int(created), *rest)


def signed_text(token: Token) -> str:
    """Return the text that the signature of the bound form covers."""
    return f"[{','.join(map(quote, (_NAME, *token.fields())))}]"


def digest(data: bytes) -> str:
    """Return the SHA-256 of a path or a body, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
