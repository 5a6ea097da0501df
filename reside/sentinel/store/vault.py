"""Values of referenced secrets, encrypted on the Sentinel's volume.

Alpha deletes a replica's agent secret as soon as its Secret is live. The Sentinel must still be able to restore that
Secret, even while Jazz is unavailable. The key is derived from the engine's passphrase (scrypt, one salt for each
vault); each value is encrypted separately (XSalsa20-Poly1305). Invariant: a value is found only under the account that
wrote it, so that no account can copy another account's value into a Secret of its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

import nacl.utils
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from reside.model.errors import InvalidInput
from reside.sentinel.store.stacks import write_file

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from pydantic import SecretStr

_SALT_BYTES: Final = 16
_SCRYPT_N: Final = 2**14


class Vault:
    """Encrypted values in one file.

    Args:
        path: the vault's file; created by the first `put`.
        passphrase: the key is derived from it.

    Raises:
        InvalidInput: the file is not a vault, or was encrypted with another passphrase.
    """

    def __init__(self, path: Path, passphrase: SecretStr) -> None:
        self._path = path
        self._passphrase = passphrase
        self._salt = b""
        self._values: dict[str, str] = {}
        self.load()

    def __repr__(self) -> str:
        return f"<Vault {self._path} with {len(self._values)} values>"

    def load(self) -> None:
        """Read the file again, because another Sentinel may have written it."""
        document = _read(self._path)
        salt = base64.b64decode(document["salt"]) if document else self._salt or nacl.utils.random(_SALT_BYTES)
        if salt != self._salt:
            self._salt, self._box = salt, SecretBox(_key(self._passphrase, salt))
        values = document["values"] if document else {}
        self._values = {name: self._open(name, sealed) for name, sealed in values.items()}

    def get(self, account: str, reference: str) -> str | None:
        """Return the value that `account` wrote under a reference; None if it is unknown."""
        return self._values.get(_name(account, reference))

    def put(self, account: str, reference: str, value: str) -> None:
        """Store a value, unless it is stored already."""
        name = _name(account, reference)
        if self._values.get(name) != value:
            self._values[name] = value
            self._save()

    def keep_only(self, used: Collection[tuple[str, str]]) -> None:
        """Delete all values except those of these (account, reference) pairs."""
        names = {_name(account, reference) for account, reference in used}
        if not self._values.keys() <= names:
            self._values = {name: value for name, value in self._values.items() if name in names}
            self._save()

    def _save(self) -> None:
        sealed = {
            name: base64.b64encode(self._box.encrypt(json.dumps([name, value]).encode())).decode()
            for name, value in self._values.items()
        }
        document = {"salt": base64.b64encode(self._salt).decode(), "values": sealed}
        write_file(self._path, json.dumps(document).encode())

    def _open(self, name: str, sealed: str) -> str:
        try:
            inner, value = json.loads(self._box.decrypt(base64.b64decode(sealed)))
        except CryptoError:
            raise InvalidInput(
                f"vault {self._path} was encrypted with another passphrase: set RESIDE_ENGINE_PASSPHRASE to that "
                "passphrase, or delete the file; values are then read again from Jazz and from live Secrets"
            ) from None
        if inner != name:
            raise InvalidInput(
                f"vault {self._path} was tampered with: the value of {name} belongs to another reference"
            )
        return str(value)


def _name(account: str, reference: str) -> str:
    return f"{account} {reference}"


def _key(passphrase: SecretStr, salt: bytes) -> bytes:
    text = passphrase.get_secret_value().encode()
    return hashlib.scrypt(text, salt=salt, n=_SCRYPT_N, r=8, p=1, dklen=SecretBox.KEY_SIZE)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        document = None
    if not isinstance(document, dict) or not {"salt", "values"} <= document.keys():
        raise InvalidInput(
            f"vault {path} is unreadable: delete the file; values are then read again from Jazz and from live Secrets"
        )
    return document
