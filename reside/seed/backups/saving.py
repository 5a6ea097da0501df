"""Back up a running cluster, without stopping anything.

The Sentinel's volume and Jazz's database must be of one moment: a secret value is in the one or in the other. So the
volume is read before and after the database is copied, and what was read counts only if it did not change in between.
etcd is not backed up: it has locks only, and Alpha makes its users again.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import zlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from reside.access.client import connect
from reside.access.objects import read_secret
from reside.common.backoff import Retries
from reside.common.files import new_file
from reside.model.constants import ACCOUNT_ID_KEY, ALPHA_NAME, SENTINEL_STATE_DIR
from reside.model.errors import Conflict, InvalidInput, NotReady
from reside.seed.backups import pods
from reside.seed.backups.archive import JAZZ, OBJECTS, SENTINEL, ArchiveWriter, Manifest
from reside.seed.backups.objects import saved_objects

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from pydantic import SecretStr

    from reside.access.target import Target

_GZIP: Final = 16
"""For zlib: the content has the header and the checksum of gzip."""
QUIET_S: Final = 120.0
"""Seconds to wait at most for a moment in which the Sentinel applies nothing."""


class _Changed(Exception):  # noqa: N818 - no error: the attempt is made again
    """The Sentinel applied something during an attempt."""


async def back_up(target: Target, path: Path, passphrase: SecretStr, report: Callable[[str, str], None]) -> Manifest:
    """Write a backup of a cluster to a new file.

    Args:
        target: the cluster.
        path: the file, which must not exist.
        passphrase: encrypts the backup.
        report: called with each step and its event.

    Raises:
        InvalidInput: the file exists, or the namespace has no cluster.
        Conflict: the Sentinel applied changes all the time.
        NotReady: a pod or the Kubernetes API is not available or too slow.
        OSError: the file can't be written.
    """
    if path.exists():  # noqa: ASYNC240 - nothing else runs in this loop yet
        raise InvalidInput(f"{path} exists: name a new file, or remove it")
    retries, is_changing = Retries(), False
    try:
        async with asyncio.timeout(QUIET_S) as limit:
            while True:
                try:
                    return await _attempt(target, path, passphrase, report, limit)
                except FileExistsError:
                    raise InvalidInput(f"{path} was created meanwhile: name a new file, or remove it") from None
                except _Changed:
                    is_changing = True
                    report("a change meanwhile", "found; the backup begins again")
                    await asyncio.sleep(retries.failed())  # the back-off itself, not a wait for a state
    except TimeoutError as error:
        if not limit.expired():  # that of a connection
            raise NotReady(f"the cluster does not answer: {error or 'no response'}; try again") from None
        if not is_changing:
            raise NotReady(
                f"the Sentinel's volume was not read within {QUIET_S:.0f} s: run the command nearer to the cluster, or "
                "when its pods have less to do"
            ) from None
        raise Conflict(
            f"the Sentinel applied changes for {QUIET_S:.0f} s without a pause, so no moment could be backed up: wait "
            "until `reside replica list` shows no change, then try again"
        ) from None


async def _attempt(
    target: Target,
    path: Path,
    passphrase: SecretStr,
    report: Callable[[str, str], None],
    limit: asyncio.Timeout,
) -> Manifest:
    async with connect(target) as client:
        alpha = await read_secret(client, ALPHA_NAME)
        if not alpha or ACCOUNT_ID_KEY not in alpha:
            raise InvalidInput(f"namespace {target.namespace} has no ReSide cluster: check the name of the namespace")
        pod = await pods.sentinel_pod(client)
        before = await pods.fingerprint(target, pod)
        with new_file(path) as file:
            archive = ArchiveWriter(file, passphrase)
            report(JAZZ, "started")
            async with pods.program(target, pods.JAZZ_POD, "snapshot", pods.DATABASE) as snapshot:
                await snapshot.read_line()
                archive.add(OBJECTS, _encoded(await saved_objects(client)))
                report(SENTINEL, "started")
                async with pods.program(target, pod, "pack", SENTINEL_STATE_DIR) as packed:
                    await archive.add_parts(SENTINEL, whole(packed.chunks(), SENTINEL))
                if await pods.fingerprint(target, pod) != before:
                    raise _Changed
                report(SENTINEL, "done")
                limit.reschedule(None)  # the moment is found; its copy may take as long as it takes
                await snapshot.send(b"\n")
                await archive.add_parts(JAZZ, whole(snapshot.chunks(), JAZZ))
            report(JAZZ, "done")
            created = datetime.now(UTC).isoformat(timespec="seconds")
            manifest = Manifest(secrets.token_hex(8), created, target.namespace, alpha[ACCOUNT_ID_KEY])
            archive.finish(manifest)
        return manifest


async def whole(chunks: AsyncIterator[bytes], what: str) -> AsyncIterator[bytes]:
    """Yield compressed content, and check that it is complete: a lost connection may look like its end.

    Raises:
        NotReady: it is cut or damaged.
    """
    content = zlib.decompressobj(zlib.MAX_WBITS | _GZIP)
    async for chunk in chunks:
        try:
            content.decompress(chunk)
        except zlib.error as error:
            raise NotReady(f"what was read of {what} is damaged: {error}; try again") from None
        yield chunk
    if not content.eof:
        raise NotReady(f"the connection was lost while {what} was read: try again")


def _encoded(objects: list[dict[str, Any]]) -> bytes:
    return json.dumps(objects, sort_keys=True).encode()
