"""Expired certificates of a kubeconfig and of an API server, for the error of a refused connection."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lightkube.config.kubeconfig import SingleConfig


def why_unauthorized(cluster: SingleConfig) -> str:
    """Return why an API server does not accept the user of a kubeconfig, and what to do."""
    expired = _expired_since(cluster)
    user = f"user {cluster.context.user!r} of the kubeconfig"
    if expired is not None:
        return f"the client certificate of {user} expired on {expired:%Y-%m-%d %H:%M} UTC: get a new kubeconfig"
    return f"{user} is not accepted (Unauthorized): get new credentials for this cluster, then run it again"


def why_unreachable(error: Exception) -> str:
    """Return why an API server can't be reached, and what to do if that is known."""
    text = str(error) or type(error).__name__
    if "certificate has expired" in text:
        return (
            "its certificate has expired: renew it (`kubeadm certs renew apiserver`, or restart the local cluster), or "
            "correct this machine's clock"
        )
    if "certificate is not yet valid" in text:
        return "its certificate is not yet valid: correct this machine's clock (`timedatectl set-ntp true`)"
    return f"{text}: check that it runs, its address in the kubeconfig, and the network"


def _expired_since(cluster: SingleConfig) -> datetime | None:
    """Return when the client certificate expired; None if there is none, or it is valid."""
    from cryptography import x509  # noqa: PLC0415 - slow to import, and needed only after an error

    user = cluster.user
    try:
        if user is None:
            return None
        if user.client_cert_data:
            pem = base64.b64decode(user.client_cert_data)
        elif user.client_cert:
            pem = Path(cluster.abs_file(user.client_cert)).read_bytes()
        else:
            return None
        end = x509.load_pem_x509_certificate(pem).not_valid_after_utc
    except (OSError, ValueError, binascii.Error):
        return None  # the API server's answer is all that is known
    return end if end < datetime.now(UTC) else None
