"""Where the Sentinel keeps the states of stacks, and what encrypts their secrets: addresses that are settings."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator

VOLUME: Final = "volume"
"""The backend on the Sentinel's volume, for a cluster whose states were in an object store before."""
PASSPHRASE: Final = "passphrase"  # noqa: S105 - a word, not a password
_STORE: Final = re.compile(r"(s3|gs|azblob)://[a-z0-9][A-Za-z0-9._/-]*(\?[^\s#@]*)?")
_KEY: Final = re.compile(r"(awskms|gcpkms|azurekeyvault|hashivault)://[A-Za-z0-9._:/-]+(\?[^\s#@]*)?")
_CREDENTIALS: Final = re.compile(r"(?i)[?&;][^=]*(secret|password|token|credential|access_?key)[^=]*=")


def _backend(address: str) -> str:
    if address != VOLUME and not _STORE.fullmatch(address):
        raise ValueError(
            f"must be `{VOLUME}`, or the address of an object store such as s3://BUCKET/PREFIX?region=REGION"
        )
    return _without_credentials(address)


def _provider(address: str) -> str:
    if address != PASSPHRASE and not _KEY.fullmatch(address):
        raise ValueError(f"must be `{PASSPHRASE}`, or the address of a key such as awskms://alias/NAME?region=REGION")
    return _without_credentials(address)


def _without_credentials(address: str) -> str:
    """Refuse credentials in an address: everybody can read the settings of a cluster."""
    if _CREDENTIALS.search(address):
        raise ValueError("must not contain credentials: put them into the Secret kubernetes-sentinel-store")
    return address


StateBackend = Annotated[str, AfterValidator(_backend)]
"""Backend of the states: `volume`, or the address of an object store."""
SecretsProvider = Annotated[str, AfterValidator(_provider)]
"""What encrypts secrets in states: `passphrase`, or the address of a key."""
