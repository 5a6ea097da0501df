"""The cryptographic operations of the protocol (docs/jazz-protocol.md, section 1): BLAKE3, Ed25519, X25519, XSalsa20.

Every function is pure except those that generate random keys. Secrets are passed in their text form
(`signerSecret_z…`) and never appear in a log or an error.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from blake3 import blake3
from nacl.bindings import (
    crypto_scalarmult,
    crypto_scalarmult_base,
    crypto_secretbox,
    crypto_secretbox_open,
    crypto_sign,
    crypto_sign_open,
    crypto_sign_seed_keypair,
)
from nacl.exceptions import BadSignatureError, CryptoError

from reside.jazz.errors import InvalidContent, InvalidCredentials
from reside.jazz.wire.encoding import b58decode, b58encode, b64decode, b64encode, parse_json, quote, stable_json
from reside.jazz.wire.stream_cipher import XSalsa20

_KEY_BYTES = 32
_NONCE_BYTES = 24
_SHORT_HASH_BYTES = 19
_KEY_ID_BYTES = 12
_SIGNATURE_BYTES = 64


@dataclass(frozen=True)
class Agent:
    """The key pairs of an agent secret.

    Attributes:
        agent_id: `<sealer id>/<signer id>`, public.
        sealer_id: public X25519 key.
        signer_id: public Ed25519 key.
    """

    agent_id: str
    sealer_id: str
    signer_id: str
    sealer_key: bytes = field(repr=False)
    signer_key: bytes = field(repr=False)

    @staticmethod
    def from_secret(agent_secret: str) -> "Agent":
        """Return the agent of `sealerSecret_z…/signerSecret_z…`.

        Raises:
            InvalidCredentials: the secret is malformed.
        """
        sealer_text, _, signer_text = agent_secret.partition("/")
        try:
            sealer_key = _tail(sealer_text, "sealerSecret_z", _KEY_BYTES)
            seed = _tail(signer_text, "signerSecret_z", _KEY_BYTES)
        except InvalidContent:
            raise InvalidCredentials(
                "the agent secret is malformed; it looks like sealerSecret_z…/signerSecret_z…"
            ) from None
        public_key, signer_key = crypto_sign_seed_keypair(seed)
        sealer_id = sealer_id_of(sealer_key)
        signer_id = "signer_z" + b58encode(public_key)
        return Agent(f"{sealer_id}/{signer_id}", sealer_id, signer_id, sealer_key, signer_key)

    def sign(self, text: str) -> str:
        """Return the `signature_z…` of a text."""
        return "signature_z" + b58encode(crypto_sign(text.encode(), self.signer_key)[:_SIGNATURE_BYTES])


@dataclass(frozen=True)
class ReadKey:
    """A symmetric key of a group: its public id and its secret."""

    key_id: str
    secret: str = field(repr=False)

    @staticmethod
    def generate() -> "ReadKey":
        """Return a new random key."""
        return ReadKey(
            "key_z" + b58encode(secrets.token_bytes(_KEY_ID_BYTES)),
            "keySecret_z" + b58encode(secrets.token_bytes(_KEY_BYTES)),
        )


def new_agent_secret() -> str:
    """Return a new random agent secret."""
    return (
        f"sealerSecret_z{b58encode(secrets.token_bytes(_KEY_BYTES))}"
        f"/signerSecret_z{b58encode(secrets.token_bytes(_KEY_BYTES))}"
    )


def sealer_id_of(sealer_key: bytes) -> str:
    """Return the public `sealer_z…` of an X25519 secret."""
    return "sealer_z" + b58encode(crypto_scalarmult_base(sealer_key))


def short_hash(text: str) -> str:
    """Return the first 19 bytes of a text's BLAKE3 hash in base58."""
    return b58encode(blake3(text.encode()).digest(_SHORT_HASH_BYTES))


def secure_hash(value: Any) -> str:
    """Return the `hash_z…` of a value's canonical JSON."""
    return "hash_z" + b58encode(blake3(stable_json(value).encode()).digest())


def verify(signature: str, text: str, signer_id: str) -> bool:
    """Return whether the key `signer_z…` signed this text; False also if key or signature is malformed."""
    try:
        signature_bytes = _tail(signature, "signature_z", _SIGNATURE_BYTES)
        crypto_sign_open(signature_bytes + text.encode(), _verify_key(signer_id))
    except (BadSignatureError, InvalidContent, UnicodeEncodeError):
        return False
    return True


def nonce_of(material: str) -> bytes:
    """Return the 24-byte nonce of a material's canonical JSON."""
    return blake3(material.encode()).digest(_NONCE_BYTES)


def transaction_material(co_id: str, session_id: str, index: int) -> str:
    """Return the canonical JSON of a transaction's nonce material."""
    return f'{{"in":"{co_id}","tx":{{"sessionID":{quote(session_id)},"txIndex":{index}}}}}'


def decryptor(key_secret: str, co_id: str) -> Callable[[str, str, int], bytes]:
    """Return a function that decrypts many transactions of one value with one key.

    Its arguments are an `encrypted_U…`, the transaction's session and its index in that session.
    """
    stream = XSalsa20(_symmetric_key(key_secret))
    current, start = "", ""

    def opened(cipher: str, session: str, index: int) -> bytes:
        nonlocal current, start
        if session != current:  # most transactions are of the session of the one before
            current, start = session, f'{{"in":"{co_id}","tx":{{"sessionID":{quote(session)},"txIndex":'
        return stream.apply(_encrypted(cipher), nonce_of(f"{start}{index}}}}}"))

    return opened


def encrypt_text(plain: str, key_secret: str, material: str) -> str:
    """Encrypt a JSON text as `encrypted_U…`: XSalsa20 without a MAC, because the session's signature protects it."""
    return "encrypted_U" + b64encode(XSalsa20(_symmetric_key(key_secret)).apply(plain.encode(), nonce_of(material)))


def decrypt(cipher: str, key_secret: str, material: str) -> bytes:
    """Decrypt the JSON text of an `encrypted_U…`. A wrong key is not detected: it gives arbitrary bytes.

    Raises:
        InvalidContent: the text is malformed.
    """
    return XSalsa20(_symmetric_key(key_secret)).apply(_encrypted(cipher), nonce_of(material))


def encrypt_key(key: ReadKey, under: ReadKey) -> str:
    """Return a key's secret, encrypted under another key."""
    return encrypt_text(stable_json(key.secret), under.secret, _key_material(key.key_id, under.key_id))


def decrypt_key(cipher: str, key_id: str, under: ReadKey) -> str | None:
    """Decrypt the secret of `key_id` with another key; None if it is malformed."""
    try:
        return _key_secret(parse_json(decrypt(cipher, under.secret, _key_material(key_id, under.key_id))))
    except InvalidContent:
        return None


def seal(message: str, sender: Agent, sealer_id: str, material: str) -> str:
    """Seal a JSON string as `sealed_U…`: only the owner of `sealer_id` can open it, and it proves the sender."""
    key = _shared_key(sender.sealer_key, sealer_id)
    return "sealed_U" + b64encode(crypto_secretbox(stable_json(message).encode(), nonce_of(material), key))


def unseal_key(sealed: str, receiver: Agent, sender_sealer_id: str, material: str) -> str | None:
    """Open the key secret in a `sealed_U…`; None if it is malformed, or not from this sender to this receiver."""
    try:
        if not sealed.startswith("sealed_U"):
            return None
        key = _shared_key(receiver.sealer_key, sender_sealer_id)
        plain = crypto_secretbox_open(b64decode(sealed[len("sealed_U") :]), nonce_of(material), key)
        return _key_secret(parse_json(plain))
    except (CryptoError, InvalidContent, ValueError):
        return None


def seal_key_for_group(key_secret: str, sealer_id: str, material: str) -> str:
    """Seal a key secret as `sealedForGroup_U…`, with an ephemeral key, for all who have a group's sealer."""
    ephemeral = secrets.token_bytes(_KEY_BYTES)
    key = agree(ephemeral, sealer_id)
    box = crypto_secretbox(stable_json(key_secret).encode(), nonce_of(material), key)
    return "sealedForGroup_U" + b64encode(crypto_scalarmult_base(ephemeral) + box)


def unseal_key_for_group(sealed: str, read_key_secret: str, material: str) -> str | None:
    """Open the key secret in a `sealedForGroup_U…` with the group sealer of a read key; None if that fails."""
    try:
        if not sealed.startswith("sealedForGroup_U"):
            return None
        data = b64decode(sealed[len("sealedForGroup_U") :])
        key = crypto_scalarmult(group_sealer_key(read_key_secret), data[:_KEY_BYTES])
        return _key_secret(parse_json(crypto_secretbox_open(data[_KEY_BYTES:], nonce_of(material), key)))
    except (CryptoError, InvalidContent, ValueError):
        return None


def group_sealer_key(read_key_secret: str) -> bytes:
    """Return the X25519 secret of a group's sealer, derived from its read key."""
    return blake3(b"groupSealer" + read_key_secret.encode()).digest()


def group_sealer_value(key: ReadKey) -> str:
    """Return the value of a group's `groupSealer` for a read key: `<key id>@<sealer id>`."""
    return f"{key.key_id}@{sealer_id_of(group_sealer_key(key.secret))}"


def _encrypted(cipher: str) -> bytes:
    if not cipher.startswith("encrypted_U"):
        raise InvalidContent("an encrypted text has no prefix encrypted_U")
    return b64decode(cipher[len("encrypted_U") :])


def _key_material(encrypted_id: str, encrypting_id: str) -> str:
    return stable_json({"encryptedID": encrypted_id, "encryptingID": encrypting_id})


def _key_secret(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    _symmetric_key(value)
    return value


def agree(sealer_key: bytes, sealer_id: str) -> bytes:
    """Return the secret that the owners of two sealers share (X25519).

    Raises:
        InvalidContent: `sealer_id` is malformed, or a point of low order.
    """
    public = _tail(sealer_id, "sealer_z", _KEY_BYTES)
    try:
        return crypto_scalarmult(sealer_key, public)
    except CryptoError:
        raise InvalidContent("a sealer id is not a usable key: it is a point of low order") from None


_shared_key = lru_cache(maxsize=4096)(agree)


@lru_cache(maxsize=4096)
def _symmetric_key(key_secret: str) -> bytes:
    return _tail(key_secret, "keySecret_z", _KEY_BYTES)


@lru_cache(maxsize=4096)
def _verify_key(signer_id: str) -> bytes:
    return _tail(signer_id, "signer_z", _KEY_BYTES)


def _tail(text: str, prefix: str, length: int) -> bytes:
    if not text.startswith(prefix):
        raise InvalidContent(f"expected a text that starts with {prefix}")
    # Decoding takes time quadratic in the length, and an attacker may have chosen the text.
    data = b58decode(text[len(prefix) :]) if len(text) <= len(prefix) + 2 * length else b""
    if len(data) != length:
        raise InvalidContent(f"expected {length} bytes in base58 after {prefix}")
    return data
