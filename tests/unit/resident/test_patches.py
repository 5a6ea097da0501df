"""When the patches of Pulumi's SDK are installed: by version, and each by its own switch."""

from __future__ import annotations

import logging
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reside.resident import ResidentCommand, ResidentSettings, channels, debug_filter, patches

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the patches that were installed, none of which changes the SDK."""
    found: list[str] = []
    monkeypatch.setattr(debug_filter, "install_debug_filter", lambda: found.append("debug filter"))
    monkeypatch.setattr(channels, "separate_channels", lambda: found.append("channels"))
    return found


@pytest.fixture
def other_version(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pretend that the SDK has an untested version."""
    monkeypatch.setattr(metadata, "version", lambda name: {"pulumi": "3.260.0"}[name])
    patches._warn_untested.cache_clear()
    yield
    patches._warn_untested.cache_clear()


def test_the_tested_version_is_the_one_that_is_installed_and_that_the_engine_is_built_with() -> None:
    assert metadata.version("pulumi") == patches.TESTED_SDK_VERSION
    required = (Path(__file__).parents[3] / "engine/go.mod").read_text()
    assert f"github.com/pulumi/pulumi/pkg/v3 v{patches.TESTED_SDK_VERSION}\n" in required


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (ResidentSettings(), ["debug filter", "channels"]),
        (ResidentSettings(filter_debug_messages=False), ["channels"]),
        (ResidentSettings(separate_channels=False), ["debug filter"]),
        (ResidentSettings(filter_debug_messages=False, separate_channels=False), []),
    ],
)
def test_each_patch_has_a_switch(settings: ResidentSettings, expected: list[str], installed: list[str]) -> None:
    ResidentCommand(settings)
    assert installed == expected


@pytest.mark.usefixtures("other_version")
def test_another_version_is_not_patched_and_warned_about_once(
    installed: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    ResidentCommand()
    ResidentCommand()
    assert installed == []
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "pulumi 3.260.0 is installed" in record.message
    assert "install pulumi 3.259.0" in record.message


@pytest.mark.usefixtures("other_version", "installed")
def test_with_another_version_the_stock_command_line_runs_everything(tmp_path: Path) -> None:
    stock = tmp_path / "pulumi"
    stock.write_text('#!/bin/sh\n[ "$2" = version ] && echo v3.260.1 || echo "stock: $*"\n')
    stock.chmod(0o755)
    settings = ResidentSettings(engine="no-such-engine", folder=tmp_path / "engines")
    with ResidentCommand(settings, str(stock)) as command:
        assert command.run(["up"], "/", {}).stdout == "stock: --non-interactive up"
        assert str(command.version) == "3.260.1"
    assert not (tmp_path / "engines").exists()


def test_a_patch_that_does_not_fit_prevents_all(installed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(channels, "separate_channels")
    with pytest.raises(ImportError):
        ResidentCommand()
    assert installed == []
