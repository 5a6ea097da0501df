"""Fetch a vendor's archive over HTTP, check it against its pinned checksum, and unpack the binaries of a unit.

`RESIDE_FETCH` says whether to fetch: `0` never, `1` always. An address, such as `http://mirror.example`, is that of a
mirror, which has the archives under host and path of the vendor. By default, archives are fetched from the vendors that
answer within two seconds.
"""

import hashlib
import http.client
import os
import shutil
import tarfile
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tools.builder.downloads import Download
from tools.builder.golang import BuildError

_CHUNK = 1 << 18
_MEGABYTE = 1_000_000
PROBE_SECONDS = 2.0


class FetchError(Exception):
    """An archive can't be fetched; the unit is built instead."""


@dataclass(frozen=True)
class Limits:
    """When a fetch is given up.

    Args:
        seconds: for the whole archive.
        silence: seconds without any byte.
        rate: least bytes per second in each window.
        window: seconds over which the rate is measured.
        size: bytes of the largest archive; what is no archive must not fill the disk.
    """

    seconds: float = 900.0
    silence: float = 15.0
    rate: float = 300_000.0  # at less, building Kubernetes is faster
    window: float = 20.0
    size: int = 2_000_000_000


class Fetcher:
    """Fetches archives from the vendors, or from a mirror. Several threads may use it; `stop` ends all fetches.

    Args:
        setting: the value of `RESIDE_FETCH`.
        limits: when a fetch is given up.
    """

    def __init__(self, setting: str, limits: Limits = Limits()) -> None:
        if setting not in ("", "0", "1") and urlsplit(setting).scheme not in ("http", "https"):
            raise FetchError(f"RESIDE_FETCH is {setting!r}: set it to 0, to 1, or to the http address of a mirror")
        self._setting = setting
        self._limits = limits
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End all fetches."""
        self._stopped.set()

    def address(self, download: Download) -> str:
        """Return where an archive is fetched from."""
        if self._setting in ("", "0", "1"):
            return download.url
        parts = urlsplit(download.url)
        return f"{self._setting.rstrip('/')}/{parts.netloc}{parts.path}"

    def reachable(self, downloads: Mapping[str, Download]) -> dict[str, str | None]:
        """Return, for each unit, None if its archive is to be fetched, or why it is not.

        Servers are asked at the same time, for two seconds in total.
        """
        if self._setting == "0":
            return dict.fromkeys(downloads, "RESIDE_FETCH=0")
        if self._setting:
            return dict.fromkeys(downloads)
        return probe({unit: self.address(download) for unit, download in downloads.items()}, PROBE_SECONDS)

    def fetch(
        self, download: Download, target: Path, root: Path, binaries: Collection[str], report: Callable[[str], None]
    ) -> None:
        """Write binaries of an archive into a folder.

        Args:
            download: the archive.
            target: the folder for the binaries.
            root: the folder of the cache, which has the archive while it is fetched.
            binaries: names of the binaries.
            report: called with the progress.

        Raises:
            FetchError: the archive can't be fetched, or it is not the one that is pinned.
            BuildError: `stop` was called.
        """
        with tempfile.TemporaryDirectory(prefix=".fetched-", dir=root) as folder:
            archive = Path(folder) / "archive"
            self._download(self.address(download), download, archive, report)
            report("unpacking")
            _unpack(archive, {name: download.members[name] for name in binaries}, target)

    def _download(self, address: str, download: Download, path: Path, report: Callable[[str], None]) -> None:
        digest = hashlib.new(download.algorithm)
        try:
            with (
                urllib.request.urlopen(address, timeout=self._limits.silence) as response,  # noqa: S310 - checked
                path.open("wb") as file,
            ):
                size = response.length  # None if the server does not say it, or says nonsense
                pace = _Pace(self._limits)
                while chunk := response.read1(_CHUNK):
                    if self._stopped.is_set():
                        raise BuildError("stopped")
                    file.write(chunk)
                    digest.update(chunk)
                    pace.add(len(chunk))
                    report(f"fetched {pace.total // _MEGABYTE} of {(size or 0) // _MEGABYTE} MB from {address}")
        except (OSError, http.client.HTTPException) as error:
            raise FetchError(f"{address}: {_words(error)}") from error
        if size is not None and pace.total != size:
            raise FetchError(f"{address}: ended after {pace.total} of {size} bytes")
        if digest.hexdigest() != download.checksum:
            raise FetchError(f"{address}: its {download.algorithm} is not the one that is pinned")


class _Pace:
    """The bytes of one fetch so far, and whether they arrive fast enough."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._began = self._window = time.monotonic()
        self._in_window = 0
        self.total = 0

    def add(self, size: int) -> None:
        """Count bytes; raise `FetchError` if the fetch is too slow or too long."""
        now = time.monotonic()
        self.total += size
        self._in_window += size
        if self.total > self._limits.size:
            raise FetchError(f"longer than {self._limits.size // _MEGABYTE} MB")
        if now - self._began > self._limits.seconds:
            raise FetchError(f"not fetched within {self._limits.seconds:.0f} s")
        elapsed = now - self._window
        if elapsed < self._limits.window:
            return
        if self._in_window < self._limits.rate * elapsed:
            raise FetchError(f"too slow: {self._in_window / elapsed / 1000:.0f} kB/s")
        self._window, self._in_window = now, 0


def probe(addresses: Mapping[str, str], seconds: float) -> dict[str, str | None]:
    """Return, for each name, None if its server has the file, or why not; wait for all servers together.

    The threads are daemons, because a look-up of a name has no timeout.
    """
    found: dict[str, str | None] = {}

    def ask(name: str, address: str) -> None:
        request = urllib.request.Request(address, method="HEAD")  # noqa: S310 - `Fetcher` checks the scheme
        try:
            with urllib.request.urlopen(request, timeout=seconds):  # noqa: S310
                found[name] = None
        except (OSError, http.client.HTTPException) as error:
            found[name] = f"{urlsplit(address).hostname}: {_words(error)}"

    threads = [threading.Thread(target=ask, args=item, daemon=True) for item in addresses.items()]
    for thread in threads:
        thread.start()
    end = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    silent = {
        name: f"{urlsplit(address).hostname}: no answer in {seconds:.0f} s" for name, address in addresses.items()
    }
    return silent | dict(found)


def setting() -> str:
    """Return the value of `RESIDE_FETCH`."""
    return os.environ.get("RESIDE_FETCH", "").strip()


def _words(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code}"
    if isinstance(error, urllib.error.URLError):
        return str(getattr(error.reason, "strerror", None) or error.reason)
    return str(error) or type(error).__name__


def _unpack(archive: Path, members: Mapping[str, str], target: Path) -> None:
    wanted = {path: name for name, path in members.items()}
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                name = wanted.pop(member.name, None)
                content = tar.extractfile(member) if name is not None else None
                if name is None or content is None:
                    continue
                with content, (target / name).open("wb") as file:
                    shutil.copyfileobj(content, file, _CHUNK)
                (target / name).chmod(0o755)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise FetchError(f"the archive can't be unpacked: {error}") from error
    if wanted:
        raise FetchError(f"the archive does not contain {', '.join(sorted(wanted))}")
