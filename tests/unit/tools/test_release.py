"""What a release checks before it builds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tools import release

if TYPE_CHECKING:
    from pathlib import Path


def test_both_distributions_have_one_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert release.version().count(".") == 2
    monkeypatch.setattr(release, "ROOT", tmp_path)
    for project, version in (("", "1.0.0"), ("reside/jazz", "1.0.1")):
        (tmp_path / project).mkdir(parents=True, exist_ok=True)
        (tmp_path / project / "pyproject.toml").write_text(f'[project]\nversion = "{version}"\n')
    with pytest.raises(release.ReleaseError, match=r"1\.0\.0, 1\.0\.1"):
        release.version()


@pytest.mark.parametrize(
    ("status", "changelog", "fault"),
    [
        (" M README.md", "\n## 0.1.0\n", "not committed"),
        ("", "\n## Unreleased\n", "CHANGELOG.md has no section"),
        ("", "\n## 0.1.0 (2026-12-01)\n", None),
    ],
)
def test_a_release_is_that_of_a_commit_and_of_the_changelog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str, changelog: str, fault: str | None
) -> None:
    monkeypatch.setattr(release, "_git", lambda *_: status)
    monkeypatch.setattr(release, "version", lambda: "0.1.0")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n{changelog}")
    if fault is None:
        release.check(allow_changes=False)
    else:
        with pytest.raises(release.ReleaseError, match=fault):
            release.check(allow_changes=False)
    release.check(allow_changes=True)


def test_the_sums_name_each_file(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"")
    (tmp_path / "a").write_bytes(b"x")
    release.write_sums(tmp_path)
    names = [line.split("  ")[1] for line in (tmp_path / "SHA256SUMS").read_text().splitlines()]
    assert names == ["a", "b"]
