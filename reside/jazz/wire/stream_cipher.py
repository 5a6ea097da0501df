"""XSalsa20 without a MAC, the stream cipher of the protocol (docs/jazz-protocol.md, section 1).

PyNaCl binds secretbox, but not the bare cipher; the library that it ships has it. It is called through PyNaCl's own
cffi, which takes half the time of ctypes: of a short text the call is what costs.
"""

import ctypes

import nacl._sodium  # type: ignore[import-not-found] # the compiled library has no stub

_ffi = nacl._sodium.ffi
_xor = _ffi.cast(
    "int(*)(unsigned char *, unsigned char *, unsigned long long, unsigned char *, unsigned char *)",
    ctypes.cast(ctypes.CDLL(nacl._sodium.__file__).crypto_stream_xsalsa20_xor, ctypes.c_void_p).value,
)


class XSalsa20:
    """The cipher under one key. It reuses its memory from text to text: use it in one thread only.

    Args:
        key: 32 bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._make_room(256)

    def apply(self, data: bytes, nonce: bytes) -> bytes:
        """Encrypts or decrypts, which is the same.

        Args:
            data: Of any length.
            nonce: 24 bytes.
        """
        size = len(data)
        if size > self._size:
            self._make_room(size)
        _xor(self._room, data, size, nonce, self._key)  # it can't fail, but for texts of 2^64 bytes
        return self._content[:size]  # type: ignore[no-any-return] # a copy, as bytes

    def _make_room(self, size: int) -> None:
        self._room, self._size = _ffi.new("unsigned char[]", size), size
        self._content = _ffi.buffer(self._room)
