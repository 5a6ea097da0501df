"""Check whether components are healthy."""

import socket
import ssl
from functools import lru_cache

import httpx2

from reside.common.tls import trusted_authorities
from reside.local.components import Health, HttpHealth

_TIMEOUT = 3.0  # seconds; all components are on this machine


def is_healthy(health: Health) -> bool:
    """Run a health check once. A component that does not respond, or responds with an error, is not healthy."""
    if isinstance(health, HttpHealth):
        return _responds(health)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_TIMEOUT)
        try:
            probe.connect(str(health.path))
        except OSError:
            return False
        return True


def _responds(health: HttpHealth) -> bool:
    try:
        verify = _context(health, _ca_time(health)) if health.ca else trusted_authorities()
        with httpx2.Client(verify=verify, timeout=_TIMEOUT, trust_env=False) as client:
            return client.get(health.url).status_code == httpx2.codes.OK
    except (httpx2.HTTPError, FileNotFoundError):
        return False


def _ca_time(health: HttpHealth) -> int:
    """Return when the CA was written; it changes when the state is deleted and created again."""
    return health.ca.stat().st_mtime_ns if health.ca else 0


@lru_cache(maxsize=64)
def _context(health: HttpHealth, ca_time: int) -> ssl.SSLContext:
    del ca_time  # part of the cache's key only
    context = ssl.create_default_context(cafile=str(health.ca))
    if health.certificate and health.key:
        context.load_cert_chain(str(health.certificate), str(health.key))
    return context
