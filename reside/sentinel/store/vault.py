"""Values of referenced secrets, encrypted on the Sentinel's volume.

Alpha forgets a replica's agent secret once its Secret is live; the Sentinel must still be able to put that Secret back,
even while Jazz is away. The key is derived from the engine's passphrase (scrypt, a salt for each vault); each value is
sealed on its own (XSalsa20-Poly1305). Invariant: a value is found only under the account that wrote it, so that no
declarer can have another's value filled into a Secret of its own.
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
    """The sealed values.

    Args:
        path: the vault's file; made at the first ``put``.
        passphrase: what its key is derived from.

    Raises:
        InvalidInput: the file is no vault, or another passphrase has made it.
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
        """Read the file; another Sentinel may have written it."""
        document = _read(self._path)
        salt = base64.b64decode(document["salt"]) if document else self._salt or nacl.utils.random(_SALT_BYTES)
        if salt != self._salt:
            self._salt, self._box = salt, SecretBox(_key(self._passphrase, salt))
        values = document["values"] if document else {}
        self._values = {name: self._open(name, sealed) for name, sealed in values.items()}

    def get(self, account: str, reference: str) -> str | None:
        """The value that ``account`` wrote under a reference; None if it is not known."""
        return self._values.get(_name(account, reference))

    def put(self, account: str, reference: str, value: str) -> None:
        """Keep a value; nothing is written when it is kept already."""
        name = _name(account, reference)
        if self._values.get(name) != value:
            self._values[name] = value
            self._save()

    def keep_only(self, used: Collection[tuple[str, str]]) -> None:
        """Forget all values but those of these (account, reference)."""
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
                f"vault {self._path} was made with another passphrase: set RESIDE_ENGINE_PASSPHRASE to that one, or "
                "delete the file, after which values are read again from Jazz and from live Secrets"
            ) from None
        if inner != name:
            raise InvalidInput(f"vault {self._path} was tampered with: the value of {name} belongs to another")
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
            f"vault {path} is unreadable: delete the file; values are then read again from their sources"
        )
    return document
