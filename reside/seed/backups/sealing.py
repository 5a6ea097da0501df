"""The encrypted stream of a backup file.

The first line is JSON: the version of the format, and what a key is derived with from the passphrase (Argon2id). The
rest are blocks of libsodium's secret stream (XChaCha20-Poly1305), each with a checksum that depends on its place. So a
changed, missing, moved or added block is found, and so is a file that was cut, since the last block is marked.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from typing import IO, TYPE_CHECKING, Any, Final

from nacl import bindings, pwhash
from nacl.exceptions import RuntimeError as NaclError
from nacl.utils import random

from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from pydantic import SecretStr

FORMAT: Final = "reside-backup"
VERSION: Final = 1
BLOCK: Final = 1 << 20
"""Bytes of content in each block but the last, which has fewer."""
PASSES: Final = pwhash.argon2id.OPSLIMIT_MODERATE
MEMORY: Final = pwhash.argon2id.MEMLIMIT_MODERATE
_SEALED: Final = BLOCK + bindings.crypto_secretstream_xchacha20poly1305_ABYTES
_FINAL: Final = bindings.crypto_secretstream_xchacha20poly1305_TAG_FINAL
_MESSAGE: Final = bindings.crypto_secretstream_xchacha20poly1305_TAG_MESSAGE
_LONGEST_HEADER: Final = 4096
_MOST_MEMORY: Final = 1 << 30
_MOST_PASSES: Final = 16
_CHECK: Final = b"reside backup"


class Sealer:
    """Write content to a file, encrypted. `finish` marks the end; without it, nobody takes the file for whole.

    Args:
        file: receives the encrypted bytes.
        passphrase: the key is derived from it.
    """

    def __init__(self, file: IO[bytes], passphrase: SecretStr) -> None:
        self._file = file
        self._rest = bytearray()
        self._state = bindings.crypto_secretstream_xchacha20poly1305_state()
        derivation = {
            "salt": random(pwhash.argon2id.SALTBYTES).hex(),
            "passes": PASSES,
            "memory": MEMORY,
        }
        key = _key(passphrase, derivation)
        stream = bindings.crypto_secretstream_xchacha20poly1305_init_push(self._state, key)
        self._header = _header_line({**derivation, "stream": stream.hex(), "check": _check(key)})
        file.write(self._header)

    def write(self, content: bytes) -> int:
        """Write content."""
        self._rest += content
        while len(self._rest) > BLOCK:
            self._seal(bytes(self._rest[:BLOCK]), _MESSAGE)
            del self._rest[:BLOCK]
        return len(content)

    def finish(self) -> None:
        """Write what is left, and the mark of the end."""
        if len(self._rest) == BLOCK:
            self._seal(bytes(self._rest), _MESSAGE)
            self._rest.clear()
        self._seal(bytes(self._rest), _FINAL)

    def _seal(self, block: bytes, tag: int) -> None:
        self._file.write(
            bindings.crypto_secretstream_xchacha20poly1305_push(self._state, block, ad=self._header, tag=tag)
        )


class Opener:
    """Read the content of an encrypted file.

    Args:
        file: has the encrypted bytes, from their beginning.
        name: name of the file, for messages.
        passphrase: that of the backup.

    Raises:
        InvalidInput: the file is no backup, is damaged, or has another version or passphrase.
    """

    def __init__(self, file: IO[bytes], name: str, passphrase: SecretStr) -> None:
        self._file = file
        self._name = name
        self._rest = b""
        self._is_complete = False
        self._header = file.readline(_LONGEST_HEADER)
        header = _parse_header(self._header, name)
        key = _key(passphrase, header)
        if not hmac.compare_digest(_check(key), header["check"]):
            raise InvalidInput(f"{name} was encrypted with another passphrase: give the one of this backup")
        self._state = bindings.crypto_secretstream_xchacha20poly1305_state()
        bindings.crypto_secretstream_xchacha20poly1305_init_pull(self._state, bytes.fromhex(header["stream"]), key)

    def read(self, size: int) -> bytes:
        """Return as many bytes as wanted, fewer only at the end of the content.

        Raises:
            InvalidInput: the file is damaged or was cut.
        """
        while len(self._rest) < size and not self._is_complete:
            self._rest += self._open()
        found, self._rest = self._rest[:size], self._rest[size:]
        return found

    def _open(self) -> bytes:
        sealed = self._file.read(_SEALED)
        if not sealed:
            raise InvalidInput(f"{self._name} was cut: its end is missing; copy it again, or use another backup")
        try:
            block, tag = bindings.crypto_secretstream_xchacha20poly1305_pull(self._state, sealed, ad=self._header)
        except (NaclError, ValueError):
            raise InvalidInput(
                f"{self._name} is damaged or was cut: a checksum is wrong; copy it again, or use another backup"
            ) from None
        if tag == _FINAL:
            self._is_complete = True
            if self._file.read(1):
                raise InvalidInput(f"{self._name} is damaged: something follows its end; copy it again")
        return bytes(block)


def _header_line(members: dict[str, Any]) -> bytes:
    document = {"format": FORMAT, "version": VERSION, **members}
    return json.dumps({**document, "sum": _sum(document)}).encode() + b"\n"


def _sum(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _parse_header(line: bytes, name: str) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InvalidInput(f"{name} is no backup of ReSide, or its beginning is damaged: name a file of `backup`")
    if document.get("version") != VERSION:
        raise InvalidInput(
            f"{name} has version {document.get('version')} of the format, and this release reads {VERSION}: use the "
            "release of ReSide that made it, or a newer one"
        )
    if document.pop("sum", None) != _sum(document):
        raise InvalidInput(f"{name} is damaged: its first line was changed; copy it again, or use another backup")
    if not _is_usable(document):
        raise InvalidInput(f"{name} is no backup that ReSide wrote: its first line has values that ReSide never writes")
    return document


def _is_usable(header: dict[str, Any]) -> bool:
    """Return whether the members of a header can be used. The limits keep a stranger's file from using all memory."""
    sizes = {
        "salt": pwhash.argon2id.SALTBYTES,
        "stream": bindings.crypto_secretstream_xchacha20poly1305_HEADERBYTES,
        "check": hashlib.sha256().digest_size,
    }
    limits = {
        "memory": (pwhash.argon2id.MEMLIMIT_MIN, _MOST_MEMORY),
        "passes": (pwhash.argon2id.OPSLIMIT_MIN, _MOST_PASSES),
    }
    return all(_is_hexadecimal(header.get(name), size) for name, size in sizes.items()) and all(
        type(number := header.get(name)) is int and least <= number <= most for name, (least, most) in limits.items()
    )


def _is_hexadecimal(value: object, size: int) -> bool:
    return isinstance(value, str) and re.fullmatch(rf"[0-9a-f]{{{2 * size}}}", value) is not None


def _key(passphrase: SecretStr, derivation: dict[str, Any]) -> bytes:
    memory, passes = derivation["memory"], derivation["passes"]
    text, salt = passphrase.get_secret_value().encode(), bytes.fromhex(derivation["salt"])
    size = bindings.crypto_secretstream_xchacha20poly1305_KEYBYTES
    found: bytes = pwhash.argon2id.kdf(size, text, salt, opslimit=passes, memlimit=memory)
    return found


def _check(key: bytes) -> str:
    """Return what tells a wrong passphrase from a damaged file. It does not tell the key."""
    return hmac.new(key, _CHECK, hashlib.sha256).hexdigest()
