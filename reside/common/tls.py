"""The TLS settings of all HTTP clients of a process."""

from __future__ import annotations

import re
import ssl
from functools import cache
from typing import Final

_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


@cache
def trusted_authorities() -> ssl.SSLContext:
    """Return a context with this machine's certificate authorities, which are loaded once, because that is slow."""
    return ssl.create_default_context()


@cache
def no_authorities() -> ssl.SSLContext:
    """Return a context without authorities, for a client of plain HTTP: it takes no time, and trusts no TLS server."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def certificates(pem: str) -> str:
    """Return the certificates of a PEM document, without anything else, such as a private key."""
    return "".join(f"{found}\n" for found in _CERTIFICATE.findall(pem))


def is_authority(pem: str) -> bool:
    """Return whether a text is a PEM document with certificates."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError):
        return False
    return True


@cache
def authorities_with(pem: str) -> ssl.SSLContext:
    """Return a context with this machine's certificate authorities and those of a PEM document.

    Raises:
        ValueError: the document contains no certificate, or a malformed one.
    """
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(cadata=pem)
    except ssl.SSLError:
        raise ValueError("it is not a PEM document with certificates") from None
    return context
