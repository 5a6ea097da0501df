"""Changes of a folder are noticed, and nothing else."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from watchdog.events import FileModifiedEvent
from watchdog.observers.polling import PollingObserver

from reside.build import watching as module
from reside.build.watching import elsewhere, watching

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.anyio


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a file, a file in a folder, and a link to a file elsewhere."""
    (tmp_path / "replica/inner").mkdir(parents=True)
    (tmp_path / "others").mkdir()
    for name in ("replica/main.py", "replica/inner/more.py", "others/contract.yaml"):
        (tmp_path / name).write_text("1")
    (tmp_path / "replica/contract.yaml").symlink_to("../others/contract.yaml")
    return tmp_path / "replica"


def _rewrite(folder: Path) -> None:
    (folder / "main.py").write_text("2")


def _replace(folder: Path) -> None:
    (folder / "main.py.new").write_text("2")
    (folder / "main.py.new").rename(folder / "main.py")


def _change_inner(folder: Path) -> None:
    (folder / "inner/more.py").write_text("2")


def _remove(folder: Path) -> None:
    (folder / "main.py").unlink()


def _add_folder(folder: Path) -> None:
    (folder / "new").mkdir()
    (folder / "new/file.py").write_text("2")


def _change_elsewhere(folder: Path) -> None:
    (folder.parent / "others/contract.yaml").write_text("2")


@pytest.mark.parametrize("change", [_rewrite, _replace, _change_inner, _remove, _add_folder, _change_elsewhere])
async def test_each_kind_of_change_is_noticed(folder: Path, change: Callable[[Path], None]) -> None:
    with watching(folder) as changes:
        change(folder)
        async with asyncio.timeout(60):
            await changes.wait()


async def test_reading_a_file_is_no_change(folder: Path) -> None:
    with watching(folder) as changes:
        for _ in range(3):
            (folder / "main.py").read_text()
        (folder / "last.py").touch()
        async with asyncio.timeout(60):
            await changes.wait()
        (folder / "main.py").read_text()
        waiting = asyncio.create_task(changes.wait())
        done, _ = await asyncio.wait({waiting}, timeout=0.3)
        assert not done
        waiting.cancel()


async def test_a_file_that_is_written_without_end_holds_nothing_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program may write its log into the folder."""
    monkeypatch.setattr(module, "LONGEST_S", 0.1)
    monkeypatch.setattr(module, "SETTLE_S", 0.0)
    changes = module.Changes()

    async def write_on() -> None:
        while True:
            changes.on_any_event(FileModifiedEvent(str(folder / "main.py")))
            await asyncio.sleep(0)

    writing = asyncio.create_task(write_on())
    async with asyncio.timeout(60):
        await changes.wait()
    writing.cancel()


async def test_without_watches_of_the_system_the_folder_is_polled(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Exhausted(PollingObserver):
        def start(self) -> None:
            raise OSError(28, "inotify watch limit reached")

    monkeypatch.setattr(module, "Observer", Exhausted)
    with watching(folder) as changes:
        _rewrite(folder)
        async with asyncio.timeout(60):
            await changes.wait()


def test_links_to_files_elsewhere_are_followed(folder: Path) -> None:
    (folder / "broken").symlink_to("nowhere")
    (folder / "inside").symlink_to("main.py")
    assert elsewhere(folder) == {folder.parent / "others"}

    (folder / "loop").symlink_to("loop")
    assert elsewhere(folder) == {folder.parent / "others"}
