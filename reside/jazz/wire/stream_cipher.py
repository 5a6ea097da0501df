"""XSalsa20 without a MAC, the stream cipher of the protocol (docs/jazz-protocol.md, section 1).

PyNaCl has no binding for the bare cipher, but the library that it ships contains it. It is called through PyNaCl's own
cffi, which takes half the time of ctypes; for short texts the call dominates.
"""

import ctypes

import nacl._sodium  # type: ignore[import-not-found] # the compiled library has no stub

_ffi = nacl._sodium.ffi
_xor = _ffi.cast(
    "int(*)(unsigned char *, unsigned char *, unsigned long long, unsigned char *, unsigned char *)",
    ctypes.cast(ctypes.CDLL(nacl._sodium.__file__).crypto_stream_xsalsa20_xor, ctypes.c_void_p).value,
)


class XSalsa20:
    """The cipher with one key. It reuses its buffer, so use it in one thread only.

    Args:
        key: 32 bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._allocate(256)

    def apply(self, data: bytes, nonce: bytes) -> bytes:
        """Encrypt or decrypt; both are the same operation.

        Args:
            data: bytes of any length.
            nonce: 24 bytes.
        """
        size = len(data)
        if size > self._size:
            self._allocate(size)
        _xor(self._memory, data, size, nonce, self._key)  # fails only for texts of 2^64 bytes
        return self._content[:size]  # type: ignore[no-any-return] # a copy, as bytes

    def _allocate(self, size: int) -> None:
        self._memory, self._size = _ffi.new("unsigned char[]", size), size
        self._content = _ffi.buffer(self._memory)
