"""Values of referenced secrets, encrypted on the Sentinel's volume.

Alpha deletes a replica's agent secret as soon as its Secret is live. The Sentinel must still be able to restore that
Secret, even while Jazz is unavailable. The key is derived from the engine's passphrase (scrypt, one salt for each
vault); each value is encrypted separately (XSalsa20-Poly1305), in a file of its own, so that a new value costs one
small write. A file is read once, and again only if another process has written it. Invariant: a value is found only
under the account that wrote it, so that no account can copy another account's value into a Secret of its own.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
import threading
from typing import TYPE_CHECKING, Final

import nacl.utils
import structlog
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from reside.common.files import create_private
from reside.common.turns import in_rounds
from reside.model.errors import InvalidInput
from reside.sentinel.store.stacks import FILES_AT_ONCE, Signature, signature, unwritable, write_file

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from pydantic import SecretStr

_log = structlog.get_logger(__name__)
_SALT: Final = "salt"
_SUFFIX: Final = ".value"
_SALT_BYTES: Final = 16
_CHECK: Final = b"reside vault"
"""What the salt's file also has, encrypted: it shows whether the passphrase is right."""
_SALT_FILE_BYTES: Final = _SALT_BYTES + SecretBox.NONCE_SIZE + SecretBox.MACBYTES + len(_CHECK)
_SCRYPT_N: Final = 2**14


class Vault:
    """Encrypted values in a folder: one file for the salt, and one for each value.

    Args:
        folder: the vault's folder; made by the first write.
        passphrase: the key is derived from it.

    Raises:
        InvalidInput: the vault was encrypted with another passphrase, or tampered with.
    """

    def __init__(self, folder: Path, passphrase: SecretStr) -> None:
        self._folder = folder
        self._passphrase = passphrase
        self._salt = b""
        self._is_damaged = False
        """Whether the salt on the volume can't be read, so that the next write begins an empty vault."""
        self._values: dict[str, str] = {}
        self._files: dict[str, Signature] = {}
        """Name of a file → the file, as it was read or written last."""
        self._writing = threading.Lock()
        self.load()

    def __repr__(self) -> str:
        return f"<Vault {self._folder} with {len(self._values)} values>"

    def load(self) -> None:
        """Read the files that another Sentinel has written."""
        for file in self._found():
            self._read_value(file)

    async def reload(self) -> None:
        """Read the files that another Sentinel has written, in several rounds of the event loop."""
        async for file in in_rounds(self._found(), FILES_AT_ONCE):
            self._read_value(file)

    def load_one(self, account: str, reference: str) -> None:
        """Read the file of one value, if another Sentinel has written it."""
        self._read_salt()
        self._read_value(self._folder / _file(_name(account, reference)))

    def get(self, account: str, reference: str) -> str | None:
        """Return the value that `account` wrote under a reference; None if it is unknown."""
        return self._values.get(_name(account, reference))

    def put(self, account: str, reference: str, value: str) -> None:
        """Store a value, unless it is stored already. It blocks until the disk has it.

        Raises:
            NotReady: the volume can't be written.
        """
        name = _name(account, reference)
        if not self._is_stored(name, value):
            self._values[name] = value
            self._write(name)

    async def put_aside(self, values: Mapping[tuple[str, str], str]) -> None:
        """Store values by account and reference as `put` does, without blocking the event loop.

        Raises:
            NotReady: the volume can't be written.
        """
        named = {_name(*key): value for key, value in values.items()}
        new = {name: value for name, value in named.items() if not self._is_stored(name, value)}
        self._values |= new
        for name in new:
            await asyncio.to_thread(self._write, name)

    def keep_only(self, used: Collection[tuple[str, str]]) -> None:
        """Delete all values except those of these (account, reference) pairs."""
        names = {_name(account, reference) for account, reference in used}
        for name in self._values.keys() - names:
            del self._values[name]
            self._files.pop(_file(name), None)
            (self._folder / _file(name)).unlink(missing_ok=True)

    def seal(self, content: bytes) -> bytes:
        """Return content encrypted with the vault's key, for a file elsewhere on the volume. It may block.

        Raises:
            NotReady: the volume can't be written.
        """
        with self._writing:
            self._make_folder()
            return base64.b64encode(self._box.encrypt(content))

    def _found(self) -> list[Path]:
        """Return the files of values; read the salt, and forget the values whose files are gone."""
        self._read_salt()
        found = {path.name: path for path in self._folder.glob(f"*{_SUFFIX}")}
        gone = self._files.keys() - found.keys()
        if gone:
            self._values = {name: value for name, value in self._values.items() if _file(name) not in gone}
            self._files = {file: read for file, read in self._files.items() if file not in gone}
        return list(found.values())

    def _is_stored(self, name: str, value: str) -> bool:
        """Return whether the file of a name has this value; a write that failed is made again."""
        return self._values.get(name) == value and _file(name) in self._files

    def _write(self, name: str) -> None:
        """Write the present value of a name. Of several writes at the same time, the last one has the last value."""
        with self._writing:
            self._make_folder()
            value = self._values.get(name)
            if value is None:
                return
            path = self._folder / _file(name)
            self._files.pop(path.name, None)
            write_file(path, base64.b64encode(self._box.encrypt(json.dumps([name, value]).encode())))
            if name not in self._values:  # it was deleted meanwhile
                path.unlink(missing_ok=True)
            elif (written := signature(path)) is not None:
                self._files[path.name] = written

    def _make_folder(self) -> None:
        """Create the folder with the salt, unless another process has done it: then its salt counts.

        Raises:
            NotReady: the volume can't be written.
        """
        salt = self._folder / _SALT
        try:
            if self._is_damaged:
                for path in (*self._folder.glob(f"*{_SUFFIX}"), salt):
                    path.unlink(missing_ok=True)
            if not salt.exists():
                self._folder.mkdir(mode=0o700, exist_ok=True)
                create_private(salt, base64.b64encode(self._salt + self._box.encrypt(_CHECK)))
        except OSError as error:
            raise unwritable(salt, error) from error
        self._read_salt()

    def _read_salt(self) -> None:
        """Read the salt; make one that the first write stores if there is none, or a damaged one.

        Raises:
            InvalidInput: the vault was encrypted with another passphrase.
        """
        path = self._folder / _SALT
        try:
            content = base64.b64decode(path.read_bytes(), validate=True)
        except FileNotFoundError:
            content = None
        except binascii.Error:
            content = b""
        is_damaged = content is not None and len(content) != _SALT_FILE_BYTES
        if is_damaged and not self._is_damaged:
            # The values are read again from Jazz and from live Secrets.
            _log.error("ignoring a damaged vault", path=str(path))
        self._is_damaged = is_damaged
        if content is None or is_damaged:
            self._files.clear()
            self._use(self._salt or nacl.utils.random(_SALT_BYTES))
        elif content[:_SALT_BYTES] != self._salt:
            self._use(content[:_SALT_BYTES])
            self._check(content[_SALT_BYTES:])

    def _use(self, salt: bytes) -> None:
        if salt != self._salt:
            self._salt, self._box = salt, SecretBox(derive_key(self._passphrase, salt))

    def _check(self, sealed: bytes) -> None:
        try:
            self._box.decrypt(sealed)
        except CryptoError:
            raise InvalidInput(
                f"vault {self._folder} was encrypted with another passphrase: set RESIDE_ENGINE_PASSPHRASE to that "
                "passphrase, or delete the folder; values are then read again from Jazz and from live Secrets"
            ) from None

    def _read_value(self, path: Path) -> None:
        present = signature(path)
        if present is None or present == self._files.get(path.name) or self._is_damaged:
            return
        self._files[path.name] = present
        try:
            name, value = json.loads(self.unseal(path.read_bytes()))
        except FileNotFoundError:
            return  # the leader has just deleted it
        except InvalidInput:
            # The value is read again from Jazz or from its live Secret, and its file is replaced then.
            _log.error("ignoring a damaged secret value in the vault", path=str(path))
            return
        if _file(str(name)) != path.name:
            raise InvalidInput(
                f"vault {self._folder} was tampered with: {path.name} has the value of another reference"
            )
        self._values[str(name)] = str(value)

    def unseal(self, sealed: bytes) -> bytes:
        """Return what was encrypted with the vault's key.

        Raises:
            InvalidInput: it was encrypted with another key, or is damaged.
        """
        try:
            return self._box.decrypt(base64.b64decode(sealed, validate=True))
        except (CryptoError, ValueError):
            raise InvalidInput("it was not encrypted with the key of this vault") from None


def _name(account: str, reference: str) -> str:
    return f"{account} {reference}"


def derive_key(passphrase: SecretStr, salt: bytes) -> bytes:
    """Return the key of a vault."""
    text = passphrase.get_secret_value().encode()
    return hashlib.scrypt(text, salt=salt, n=_SCRYPT_N, r=8, p=1, dklen=SecretBox.KEY_SIZE)


def _file(name: str) -> str:
    """Return the name of the file of a value. It shows neither account nor reference."""
    return hashlib.sha256(name.encode()).hexdigest() + _SUFFIX
