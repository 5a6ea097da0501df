"""The file of a backup: what was written is read, and anything else is refused with its reason."""

from __future__ import annotations

import gzip
import io
import json
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from reside.model.errors import InvalidInput, NotReady
from reside.seed.backups import sealing
from reside.seed.backups.archive import JAZZ, OBJECTS, PART, Archive, ArchiveWriter, Manifest
from reside.seed.backups.saving import whole
from reside.seed.backups.sealing import BLOCK, Opener, Sealer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.anyio
PASSPHRASE = SecretStr("correct horse battery")
MANIFEST = Manifest("4f", "2026-01-02T03:04:05+00:00", "reside", "co_zAlpha")
OBJECT = {"kind": "Secret", "metadata": {"name": "alpha"}, "data": {"agentSecret": "aGlkZGVu"}}


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the derivation of a key fast."""
    monkeypatch.setattr(sealing, "PASSES", 1)
    monkeypatch.setattr(sealing, "MEMORY", 8192)


def sealed(content: bytes) -> bytes:
    """Return content in the encrypted form."""
    file = io.BytesIO()
    sealer = Sealer(file, PASSPHRASE)
    sealer.write(content)
    sealer.finish()
    return file.getvalue()


def opened(content: bytes, passphrase: SecretStr = PASSPHRASE) -> bytes:
    """Return what encrypted content has, read in small pieces."""
    opener = Opener(io.BytesIO(content), "b.reside", passphrase)
    found = b""
    while piece := opener.read(100_003):
        found += piece
    return found


async def write(path: Path, jazz: bytes = b"data") -> None:
    """Write a backup."""

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(jazz), 1_000_000):
            yield jazz[start : start + 1_000_000]

    with path.open("wb") as file:
        writer = ArchiveWriter(file, PASSPHRASE)
        writer.add(OBJECTS, json.dumps([OBJECT]).encode())
        await writer.add_parts(JAZZ, chunks())
        writer.finish(MANIFEST)


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_content_of_any_size_is_read_as_it_was_written(size: int) -> None:
    content = bytes(range(256)) * (size // 256) + bytes(size % 256)
    assert opened(sealed(content)) == content


def test_each_changed_byte_is_found() -> None:
    whole = sealed(b"content")
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1
        with pytest.raises(InvalidInput, match=r"b\.reside"):
            opened(bytes(changed))


def test_each_cut_is_found() -> None:
    whole = sealed(bytes(BLOCK + 10))
    header = whole.index(b"\n") + 1
    block = header + BLOCK + 17
    for end in (0, 5, header, header + 1, block - 1, block, block + 1, len(whole) - 1):
        with pytest.raises(InvalidInput, match=r"b\.reside (was cut|is damaged|is no backup)"):
            opened(whole[:end])


def test_blocks_that_were_exchanged_or_added_are_found() -> None:
    whole = sealed(bytes(2 * BLOCK + 10))
    start = whole.index(b"\n") + 1
    size = BLOCK + 17
    header, first, second, rest = (
        whole[:start],
        whole[start : start + size],
        whole[start + size : start + 2 * size],
        whole[start + 2 * size :],
    )
    for changed in (header + second + first + rest, header + first + rest, whole + b"x", whole + rest):
        with pytest.raises(InvalidInput, match="is damaged"):
            opened(changed)


def test_another_passphrase_is_told_from_damage() -> None:
    with pytest.raises(InvalidInput, match="encrypted with another passphrase: give the one of this backup"):
        opened(sealed(b"content"), SecretStr("correct horse"))


def test_another_version_is_refused_before_anything_else() -> None:
    line, _, rest = sealed(b"content").partition(b"\n")
    document = {**json.loads(line), "version": 2}
    with pytest.raises(InvalidInput, match="has version 2 of the format, and this release reads 1: use the release"):
        opened(json.dumps(document).encode() + b"\n" + rest)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"[]\n", b"{}\n", b"\xff\n", b"PK\x03\x04", pytest.param(b"[" * 4000, id="deep")]
)
def test_another_file_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidInput, match="is no backup of ReSide"):
        opened(content)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("memory", 1 << 40),
        ("memory", 1),
        ("memory", "8192"),
        ("passes", 10**9),
        ("passes", True),
        ("salt", "00"),
        ("salt", None),
        ("stream", "zz"),
        ("check", "ü"),
    ],
)
def test_a_header_of_a_stranger_is_refused_before_it_is_used(member: str, value: object) -> None:
    """Its checksum needs no passphrase, so a stranger can make it right."""
    line, _, rest = sealed(b"content").partition(b"\n")
    document = {**json.loads(line), member: value}
    document.pop("sum")
    with pytest.raises(InvalidInput, match=r"^b\.reside is no backup that ReSide wrote"):
        opened(json.dumps({**document, "sum": sealing._sum(document)}).encode() + b"\n" + rest)


async def test_a_backup_has_its_members_and_nothing_in_plain_text(tmp_path: Path) -> None:
    path, jazz = tmp_path / "b.reside", bytes(range(250)) * 40_000
    await write(path, jazz)
    archive = Archive(path, PASSPHRASE)
    manifest, objects = archive.check()
    assert (manifest.namespace, manifest.alpha, objects) == ("reside", "co_zAlpha", [OBJECT])
    parts = list(archive.parts(JAZZ))
    assert b"".join(parts) == jazz
    assert [len(part) for part in parts] == [PART, PART, len(jazz) - 2 * PART]
    assert not any(secret in path.read_bytes() for secret in (b"aGlkZGVu", b"agentSecret", b"correct", b"co_zAlpha"))


async def test_a_backup_that_was_cut_is_refused_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "b.reside"
    await write(path, bytes(3 * BLOCK))
    whole = path.read_bytes()
    for end in range(0, len(whole), 300_001):
        path.write_bytes(whole[:end])
        with pytest.raises(InvalidInput):
            Archive(path, PASSPHRASE).check()


async def test_a_member_that_differs_from_the_list_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.reside"
    with path.open("wb") as file:
        writer = ArchiveWriter(file, PASSPHRASE)
        writer.add(OBJECTS, b"[]")
        writer._members[OBJECTS] = (2, "0" * 64)
        writer.finish(MANIFEST)
    with pytest.raises(InvalidInput, match="its contents differ from their list"):
        Archive(path, PASSPHRASE).check()


async def read(content: bytes) -> bytes:
    """Return what is read of compressed content that arrives in pieces."""

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 7):
            yield content[start : start + 7]

    return b"".join([chunk async for chunk in whole(chunks(), "jazz")])


async def test_what_a_pod_sends_is_checked_to_be_complete() -> None:
    content = gzip.compress(bytes(range(256)) * 10)
    assert await read(content) == content
    for end in (0, 5, len(content) - 1):
        with pytest.raises(NotReady, match="the connection was lost while jazz was read: try again"):
            await read(content[:end])
    with pytest.raises(NotReady, match="what was read of jazz is damaged"):
        await read(content[:-8] + b"\0" * 8)
