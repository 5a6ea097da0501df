"""The three forms of a request token in the Authorization header."""

import hashlib
import re
from dataclasses import dataclass, field
from typing import Final

from reside.jazz.errors import TokenRefused
from reside.jazz.ids import AccountId
from reside.jazz.wire.encoding import quote_plainly

JAZZ: Final = "Jazz "
BOUND: Final = "Jazz-Bound "
SHARED: Final = "Jazz-Shared "
_MAX_HEADER_CHARACTERS: Final = 1024
_TIME: Final = re.compile(r"0|[1-9][0-9]*")
"""Each time has one text, so the proof covers the field as it was sent."""
_NONCE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_JAZZ_FIELDS: Final = 3
_FIELDS: Final = 9


@dataclass(frozen=True)
class Token:
    """The fields of a token. In the JavaScript form, the fields from `agent_id` on are empty.

    Attributes:
        scheme: the form, as the header names it.
        proof: the signature; in the shared form, the authentication code.
    """

    scheme: str
    proof: str = field(repr=False)
    account_id: AccountId
    created_ms: int
    agent_id: str = ""
    nonce: str = ""
    receiver: str = ""
    method: str = ""
    path_hash: str = ""
    body_hash: str = ""

    def fields(self) -> list[str]:
        """Return the fields that the proof of the bound and the shared form covers, in the order of the header."""
        about = [self.account_id, str(self.created_ms), self.agent_id, self.nonce]
        return [*about, self.receiver, self.method, self.path_hash, self.body_hash]


def parse(header: str | None, *schemes: str) -> Token:
    """Parse the token in a header, which may have one of these forms.

    Raises:
        TokenRefused: the header is missing or malformed.
    """
    if not header:
        raise TokenRefused("missing", "the request has no Authorization header")
    scheme = next((each for each in schemes if header.startswith(each)), None)
    if scheme is None or len(header) > _MAX_HEADER_CHARACTERS:
        expected = " or ".join(f"{each}…" for each in schemes)
        raise TokenRefused("malformed", f"the Authorization header is not of the form {expected}, or too long")
    fields = header[len(scheme) :].split("~")
    if len(fields) != (_JAZZ_FIELDS if scheme == JAZZ else _FIELDS):
        raise TokenRefused("malformed", "it has too few or too many fields")
    proof, account_id, created, *rest = fields
    if _TIME.fullmatch(created) is None or not account_id.startswith("co_z"):
        raise TokenRefused("malformed", "it contains no account id or no time")
    if rest and _NONCE.fullmatch(rest[1]) is None:
        raise TokenRefused("malformed", "its nonce is not of 1 to 64 of the characters A-Z a-z 0-9 _ -")
    return Token(scheme, proof, AccountId(account_id), int(created), *rest)


def signed_text(token: Token) -> str:
    """Return the text that the proof of the bound and the shared form covers."""
    return f"[{','.join(map(quote_plainly, (token.scheme.strip(), *token.fields())))}]"


def digest(data: bytes) -> str:
    """Return the SHA-256 of a path or a body, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
