"""The cryptographic operations of the protocol (docs/jazz-protocol.md, section 1): BLAKE3, Ed25519, X25519, XSalsa20.

Every function is pure but for the random ones. Secrets are passed as their text forms (`signerSecret_z…`); nothing here
logs or puts one into an error.
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
from reside.jazz.wire.encoding import b58decode, b58encode, b64decode, b64encode, parse_json, stable_json
from reside.jazz.wire.stream_cipher import XSalsa20

_KEY_BYTES = 32
_NONCE_BYTES = 24
_SHORT_HASH_BYTES = 19
_KEY_ID_BYTES = 12
_SIGNATURE_BYTES = 64


@dataclass(frozen=True)
class Agent:
    """The key pairs behind an agent secret.

    Attributes:
        agent_id: `<sealer id>/<signer id>`, public.
        sealer_id: Public X25519 key.
        signer_id: Public Ed25519 key.
    """

    agent_id: str
    sealer_id: str
    signer_id: str
    sealer_key: bytes = field(repr=False)
    signer_key: bytes = field(repr=False)

    @staticmethod
    def from_secret(agent_secret: str) -> "Agent":
        """The agent of `sealerSecret_z…/signerSecret_z…`.

        Raises:
            InvalidCredentials: The secret is malformed.
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
        """`signature_z…` over the bytes of a text."""
        return "signature_z" + b58encode(crypto_sign(text.encode(), self.signer_key)[:_SIGNATURE_BYTES])


@dataclass(frozen=True)
class ReadKey:
    """A symmetric key of a group: its public id and its secret."""

    key_id: str
    secret: str = field(repr=False)

    @staticmethod
    def generate() -> "ReadKey":
        """A new random key."""
        return ReadKey(
            "key_z" + b58encode(secrets.token_bytes(_KEY_ID_BYTES)),
            "keySecret_z" + b58encode(secrets.token_bytes(_KEY_BYTES)),
        )


def new_agent_secret() -> str:
    """A new random agent secret."""
    return (
        f"sealerSecret_z{b58encode(secrets.token_bytes(_KEY_BYTES))}"
        f"/signerSecret_z{b58encode(secrets.token_bytes(_KEY_BYTES))}"
    )


def sealer_id_of(sealer_key: bytes) -> str:
    """The public `sealer_z…` of an X25519 secret."""
    return "sealer_z" + b58encode(crypto_scalarmult_base(sealer_key))


def short_hash(text: str) -> str:
    """Base58 of the first 19 bytes of a text's BLAKE3."""
    return b58encode(blake3(text.encode()).digest(_SHORT_HASH_BYTES))


def secure_hash(value: Any) -> str:
    """`hash_z…` of a value's canonical JSON."""
    return "hash_z" + b58encode(blake3(stable_json(value).encode()).digest())


def verify(signature: str, text: str, signer_id: str) -> bool:
    """Whether a `signature_z…` over a text was made by the key `signer_z…`; False also when either is malformed."""
    try:
        signature_bytes = _tail(signature, "signature_z", _SIGNATURE_BYTES)
        crypto_sign_open(signature_bytes + text.encode(), _verify_key(signer_id))
    except (BadSignatureError, InvalidContent, UnicodeEncodeError):
        return False
    return True


def nonce_of(material: str) -> bytes:
    """The 24-byte nonce of a material's canonical JSON."""
    return blake3(material.encode()).digest(_NONCE_BYTES)


def transaction_material(co_id: str, session_id: str, index: int) -> str:
    """Canonical JSON of the nonce material of one transaction; ids are made of characters that need no escape."""
    return f'{{"in":"{co_id}","tx":{{"sessionID":"{session_id}","txIndex":{index}}}}}'


def opener(key_secret: str, co_id: str) -> Callable[[str, str, int], bytes]:
    """What decrypts the texts of many transactions: `decrypt` with one key for one value.

    It takes an `encrypted_U…`, the transaction's session and its place in it.
    """
    stream = XSalsa20(_symmetric_key(key_secret))
    start = f'{{"in":"{co_id}","tx":{{"sessionID":"'

    def opened(cipher: str, session: str, index: int) -> bytes:
        return stream.apply(_encrypted(cipher), nonce_of(f'{start}{session}","txIndex":{index}}}}}'))

    return opened


def encrypt_text(plain: str, key_secret: str, material: str) -> str:
    """`encrypted_U…`: the bare XSalsa20 stream over a JSON text. It has no MAC: the session's signature protects it."""
    return "encrypted_U" + b64encode(XSalsa20(_symmetric_key(key_secret)).apply(plain.encode(), nonce_of(material)))


def decrypt(cipher: str, key_secret: str, material: str) -> bytes:
    """The JSON text of an `encrypted_U…`; bytes of any kind if the key is not the right one.

    Raises:
        InvalidContent: It is malformed.
    """
    return XSalsa20(_symmetric_key(key_secret)).apply(_encrypted(cipher), nonce_of(material))


def encrypt_key(key: ReadKey, under: ReadKey) -> str:
    """A key's secret encrypted under another key."""
    return encrypt_text(stable_json(key.secret), under.secret, _key_material(key.key_id, under.key_id))


def decrypt_key(cipher: str, key_id: str, under: ReadKey) -> str | None:
    """The secret of `key_id` out of its encryption under another key; None if it is malformed."""
    try:
        return _key_secret(parse_json(decrypt(cipher, under.secret, _key_material(key_id, under.key_id))))
    except InvalidContent:
        return None


def seal(message: str, sender: Agent, sealer_id: str, material: str) -> str:
    """`sealed_U…`: a JSON string that only the owner of `sealer_id` can open, and who knows that `sender` sealed it."""
    key = _shared_key(sender.sealer_key, sealer_id)
    return "sealed_U" + b64encode(crypto_secretbox(stable_json(message).encode(), nonce_of(material), key))


def unseal_key(sealed: str, receiver: Agent, sender_sealer_id: str, material: str) -> str | None:
    """The key secret in a `sealed_U…`; None if it was not sealed by that sender for us, or is malformed."""
    try:
        if not sealed.startswith("sealed_U"):
            return None
        key = _shared_key(receiver.sealer_key, sender_sealer_id)
        plain = crypto_secretbox_open(b64decode(sealed[len("sealed_U") :]), nonce_of(material), key)
        return _key_secret(parse_json(plain))
    except (CryptoError, InvalidContent, ValueError):
        return None


def seal_key_for_group(key_secret: str, sealer_id: str, material: str) -> str:
    """`sealedForGroup_U…`: a key secret for the holders of a group's sealer, from an ephemeral key."""
    ephemeral = secrets.token_bytes(_KEY_BYTES)
    key = _shared_key.__wrapped__(ephemeral, sealer_id)
    box = crypto_secretbox(stable_json(key_secret).encode(), nonce_of(material), key)
    return "sealedForGroup_U" + b64encode(crypto_scalarmult_base(ephemeral) + box)


def unseal_key_for_group(sealed: str, read_key_secret: str, material: str) -> str | None:
    """The key secret in a `sealedForGroup_U…` for the group sealer of a read key; None if it does not open."""
    try:
        if not sealed.startswith("sealedForGroup_U"):
            return None
        data = b64decode(sealed[len("sealedForGroup_U") :])
        key = crypto_scalarmult(group_sealer_key(read_key_secret), data[:_KEY_BYTES])
        return _key_secret(parse_json(crypto_secretbox_open(data[_KEY_BYTES:], nonce_of(material), key)))
    except (CryptoError, InvalidContent, ValueError):
        return None


def group_sealer_key(read_key_secret: str) -> bytes:
    """The X25519 secret of a group, derived from its read key."""
    return blake3(b"groupSealer" + read_key_secret.encode()).digest()


def group_sealer_value(key: ReadKey) -> str:
    """What a group's `groupSealer` says for a read key: `<key id>@<sealer id>`."""
    return f"{key.key_id}@{sealer_id_of(group_sealer_key(key.secret))}"


def _encrypted(cipher: str) -> bytes:
    if not cipher.startswith("encrypted_U"):
        raise InvalidContent("an encrypted text lacks its prefix")
    return b64decode(cipher[len("encrypted_U") :])


def _key_material(encrypted_id: str, encrypting_id: str) -> str:
    return stable_json({"encryptedID": encrypted_id, "encryptingID": encrypting_id})


def _key_secret(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    _symmetric_key(value)
    return value


@lru_cache(maxsize=4096)
def _shared_key(sealer_key: bytes, sealer_id: str) -> bytes:
    public = _tail(sealer_id, "sealer_z", _KEY_BYTES)
    try:
        return crypto_scalarmult(sealer_key, public)
    except CryptoError:
        raise InvalidContent("a sealer id is no usable key: a point of low order") from None


@lru_cache(maxsize=4096)
def _symmetric_key(key_secret: str) -> bytes:
    return _tail(key_secret, "keySecret_z", _KEY_BYTES)


@lru_cache(maxsize=4096)
def _verify_key(signer_id: str) -> bytes:
    return _tail(signer_id, "signer_z", _KEY_BYTES)


def _tail(text: str, prefix: str, length: int) -> bytes:
    if not text.startswith(prefix):
        raise InvalidContent(f"expected a text that starts with {prefix}")
    # Decoding takes time that grows with the square of the length, and the text may be a forger's.
    data = b58decode(text[len(prefix) :]) if len(text) <= len(prefix) + 2 * length else b""
    if len(data) != length:
        raise InvalidContent(f"expected {length} bytes in base58 after {prefix}")
    return data
