"""The vault of an earlier release, which had all values in one file: taken over at the first start of this one.

Some of its values are nowhere else but in live Secrets, because Alpha has deleted them from Jazz. The file is deleted
after its values are stored. The Sentinel of the earlier release may still run, and write its file again: then the next
start takes that over, too.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import structlog
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from reside.sentinel.store.vault import derive_key

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import SecretStr

    from reside.sentinel.store.vault import Vault

_log = structlog.get_logger(__name__)


def take_over(file: Path, vault: Vault, passphrase: SecretStr) -> None:
    """Store the values of an earlier vault that the present one does not have; do nothing if there is no such file.

    A file that can't be read stays, and is named in the log: its values are read again from Jazz and live Secrets.

    Raises:
        NotReady: the volume can't be written.
    """
    try:
        document = json.loads(file.read_bytes())
        box = SecretBox(derive_key(passphrase, base64.b64decode(document["salt"])))
        opened = [json.loads(box.decrypt(base64.b64decode(sealed))) for sealed in document["values"].values()]
        values = {tuple(str(name).split(" ", 1)): str(value) for name, value in opened}
    except FileNotFoundError:
        return
    except (ValueError, LookupError, TypeError, AttributeError, CryptoError) as error:
        _log.error("ignoring an unreadable vault of an earlier release", path=str(file), error=type(error).__name__)
        return
    for (account, reference), value in values.items():
        if vault.get(account, reference) is None:
            vault.put(account, reference, value)
    file.unlink(missing_ok=True)
    _log.info("took over the vault of an earlier release", path=str(file), values=len(values))
