"""The toolchain's build: its progress display."""

import pytest

from tools.builder.progress import Progress


@pytest.fixture
def progress(monkeypatch: pytest.MonkeyPatch) -> Progress:
    now = iter([101.0, 175.0, 180.0, 181.0, 182.0])
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    return Progress(lambda elapsed: f"about {600 - elapsed:.0f} s left", _began=100.0)


def test_one_line_shows_all_items_and_the_remaining_time(progress: Progress) -> None:
    with progress.item("kubernetes", "building (not built yet)"):
        progress.describe("kubernetes", "7 packages left, now net")
        with progress.doing("pulumi", "downloading its modules"):
            line = progress.status()
    assert line == ("1:15  about 525 s left  kubernetes: 7 packages left, now net; pulumi: downloading its modules")


def test_each_item_has_lines_and_a_row_of_its_own(progress: Progress, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="no"), progress.item("etcd", "building (half-written)"):
        raise ValueError("no")
    progress.skip("pause", "in the cache")
    assert [line.split() for line in capsys.readouterr().err.splitlines()] == [
        ["etcd", "building", "(half-written)"],
        ["etcd", "failed,", "74", "s"],
    ]
    assert [line.split() for line in progress.table().splitlines()] == [
        ["etcd", "failed", "74.0", "s"],
        ["pause", "in", "the", "cache", "0.0", "s"],
        ["total", "80.0", "s"],
    ]
