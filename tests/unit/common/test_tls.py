"""TLS settings of HTTP clients."""

from __future__ import annotations

import ssl

from reside.common.tls import no_authorities, trusted_authorities


def test_a_client_of_plain_http_trusts_no_tls_server() -> None:
    """Its settings take no time, but no server that uses TLS after all is trusted unseen."""
    found = no_authorities()
    assert found.verify_mode is ssl.CERT_REQUIRED
    assert found.check_hostname
    assert found.cert_store_stats()["x509"] == 0
    assert trusted_authorities().cert_store_stats()["x509"] > 0
