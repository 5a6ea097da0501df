"""Passphrases: 24 English words from which an account's credentials are computed, as in jazz-tools (`PassphraseAuth`).

The words encode a seed of 32 random bytes with a checksum (BIP-39), and the seed gives the agent secret. There is no
way back: a passphrase can't be computed from credentials.
"""

from functools import cache
from typing import TYPE_CHECKING, Final

from reside.jazz.errors import InvalidCredentials
from reside.jazz.groups.invites import agent_secret_from_seed

if TYPE_CHECKING:
    from mnemonic import Mnemonic

_BITS: Final = 256
_WORDS: Final = 24


@cache
def _words() -> "Mnemonic":
    try:
        from mnemonic import Mnemonic  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise ImportError("passphrases need mnemonic: pip install 'reside-jazz[passphrase]'") from None

    return Mnemonic("english")


def new_passphrase() -> str:
    """Return a random passphrase. Anyone who has it can act as its account: keep it as you keep a private key."""
    return str(_words().generate(_BITS))


def agent_secret_from_passphrase(passphrase: str) -> str:
    """Return the agent secret of a passphrase. Case, and the spaces around the words, do not matter.

    Raises:
        InvalidCredentials: it does not have 24 words of the list, or its checksum is wrong.
    """
    words = passphrase.lower().split()
    try:
        seed = bytes(_words().to_entropy(words)) if len(words) == _WORDS else b""
    except (LookupError, ValueError):
        seed = b""
    if not seed:
        raise InvalidCredentials(
            f"a passphrase has {_WORDS} English words of BIP-39, the last of which is a checksum: check each word"
        )
    return agent_secret_from_seed(seed)
