"""The stream cipher, for one text and for many transactions; tests/interop compares it with JavaScript's."""

from reside.jazz.wire.crypto import ReadKey, decrypt, decryptor, encrypt_text, transaction_material
from reside.jazz.wire.stream_cipher import XSalsa20

CO_ID, SESSION = "co_zMap", "co_zAccount_session_z1"


def test_texts_of_any_length_are_decrypted_in_any_order() -> None:
    key = ReadKey.generate()
    texts = [f'["{"x" * size}"]' for size in (0, 3000, 1, 255, 256, 257, 100_000, 2)]
    ciphers = [
        encrypt_text(text, key.secret, transaction_material(CO_ID, SESSION, index)) for index, text in enumerate(texts)
    ]
    opened = decryptor(key.secret, CO_ID)
    assert [opened(cipher, SESSION, index).decode() for index, cipher in enumerate(ciphers)] == texts
    for index, cipher in enumerate(ciphers):
        assert decrypt(cipher, key.secret, transaction_material(CO_ID, SESSION, index)).decode() == texts[index]


def test_returned_bytes_do_not_change_when_the_buffer_is_reused() -> None:
    stream, nonce = XSalsa20(bytes(32)), bytes(24)
    first = stream.apply(b"first", nonce)
    assert stream.apply(b"other", nonce) != first
    assert stream.apply(first, nonce) == b"first"
