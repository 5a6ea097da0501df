"""A backup is of one moment: if the Sentinel's volume changes meanwhile, it begins again, and leaves no other file."""

from __future__ import annotations

import gzip
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from pydantic import SecretStr

from reside.access.target import Target
from reside.model.errors import Conflict, InvalidInput, NotReady
from reside.seed.backups import saving, sealing
from reside.seed.backups.archive import JAZZ, SENTINEL, Archive

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.anyio
TARGET = Target("reside", "port-forward", None, None, 5.0)
PASSPHRASE = SecretStr("correct horse battery")
CONTENT = {"pack": gzip.compress(b"the volume"), "snapshot": gzip.compress(b"the database")}


def names(folder: Path) -> list[str]:
    """Return the names of all files."""
    return [path.name for path in folder.iterdir()]


class Program:
    """A program in a pod that writes what it has."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    async def read_line(self) -> str:
        """Return what a snapshot says first."""
        return "ready"

    async def send(self, content: bytes) -> None:
        """Take the line after which a snapshot writes."""
        assert content == b"\n"

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the content."""
        yield self._content


@pytest.fixture
def volume(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the digests that looks at the Sentinel's volume find, in their order; then each look finds another one."""
    digests: list[str] = []
    others = (f"other {number}" for number in count())

    async def fingerprint(_target: Target, _pod: str) -> str:
        return digests.pop(0) if digests else next(others)

    @asynccontextmanager
    async def program(_target: Target, _pod: str, action: str, _path: str) -> AsyncIterator[Program]:
        yield Program(CONTENT[action])

    @asynccontextmanager
    async def connect(_target: Target) -> AsyncIterator[None]:
        yield None

    async def returned(value: Any) -> Any:
        return value

    monkeypatch.setattr(sealing, "PASSES", 1)
    monkeypatch.setattr(sealing, "MEMORY", 8192)
    monkeypatch.setattr(saving, "connect", connect)
    monkeypatch.setattr(saving, "read_secret", lambda _client, _name: returned({"accountId": "co_zAlpha"}))
    monkeypatch.setattr(saving, "saved_objects", lambda _client: returned([]))
    monkeypatch.setattr(saving.pods, "sentinel_pod", lambda _client: returned("sentinel-1"))
    monkeypatch.setattr(saving.pods, "fingerprint", fingerprint)
    monkeypatch.setattr(saving.pods, "program", program)
    return digests


async def test_a_quiet_cluster_is_backed_up_at_once(volume: list[str], tmp_path: Path) -> None:
    volume += ["a", "a"]
    events: list[str] = []
    manifest = await saving.back_up(TARGET, tmp_path / "b", PASSPHRASE, lambda step, event: events.append(step + event))
    archive = Archive(tmp_path / "b", PASSPHRASE)
    found, objects = archive.check()
    assert (found.id, found.created, objects) == (manifest.id, manifest.created, [])
    assert (b"".join(archive.parts(SENTINEL)), b"".join(archive.parts(JAZZ))) == (CONTENT["pack"], CONTENT["snapshot"])
    assert (manifest.namespace, manifest.alpha) == ("reside", "co_zAlpha")
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600
    assert not any("meanwhile" in event for event in events)


async def test_a_backup_begins_again_after_a_change(volume: list[str], tmp_path: Path) -> None:
    volume += ["a", "b", "b", "c", "c", "c"]
    events: list[str] = []
    await saving.back_up(TARGET, tmp_path / "b", PASSPHRASE, lambda step, _event: events.append(step))
    assert events.count("a change meanwhile") == 2
    assert names(tmp_path) == ["b"]
    Archive(tmp_path / "b", PASSPHRASE).check()


async def test_a_cluster_that_changes_all_the_time_is_refused(
    volume: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "QUIET_S", 3.0)  # long enough for one attempt on a busy machine
    with pytest.raises(Conflict, match="no moment could be backed up: wait until"):
        await saving.back_up(TARGET, tmp_path / "b", PASSPHRASE, lambda _step, _event: None)
    assert names(tmp_path) == []


async def test_a_cluster_that_is_too_slow_is_not_said_to_change(
    volume: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def endless(_target: Target, _pod: str) -> str:
        await anyio.sleep_forever()
        return ""

    async def refused(_target: Target, _pod: str) -> str:
        raise TimeoutError("the connection has timed out")

    monkeypatch.setattr(saving.pods, "fingerprint", refused)
    with pytest.raises(NotReady, match="does not answer: the connection has timed out; try again"):
        await saving.back_up(TARGET, tmp_path / "b", PASSPHRASE, lambda _step, _event: None)
    monkeypatch.setattr(saving, "QUIET_S", 0.1)
    monkeypatch.setattr(saving.pods, "fingerprint", endless)
    with pytest.raises(NotReady, match="the Sentinel's volume was not read within 0 s"):
        await saving.back_up(TARGET, tmp_path / "b", PASSPHRASE, lambda _step, _event: None)
    assert names(tmp_path) == []


async def test_a_file_that_exists_is_not_replaced(volume: list[str], tmp_path: Path) -> None:
    (tmp_path / "b").write_text("another backup")
    with pytest.raises(InvalidInput, match="exists: name a new file"):
        await saving.back_up(TARGET, tmp_path / "b", PASSPHRASE, lambda _step, _event: None)
    assert (tmp_path / "b").read_text() == "another backup"


async def test_a_file_that_appears_during_the_backup_is_not_replaced(volume: list[str], tmp_path: Path) -> None:
    volume += ["a", "a"]

    def report(_step: str, event: str) -> None:
        if event == "done":
            (tmp_path / "b").write_text("another backup")

    with pytest.raises(InvalidInput, match="was created meanwhile: name a new file"):
        await saving.back_up(TARGET, tmp_path / "b", PASSPHRASE, report)
    assert (tmp_path / "b").read_text() == "another backup"
    assert names(tmp_path) == ["b"]


async def test_a_failure_leaves_no_file(volume: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    volume += ["a", "a"]
    monkeypatch.setitem(CONTENT, "snapshot", CONTENT["snapshot"][:-1])
    with pytest.raises(NotReady, match="the connection was lost while jazz was read"):
        await saving.back_up(TARGET, tmp_path / "b", PASSPHRASE, lambda _step, _event: None)
    assert names(tmp_path) == []
