"""Which environment variables require another engine, and that the identity does not reveal them."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from reside.resident import EngineUnavailable, ResidentSettings
from reside.resident.environment import command_environment, find_binary, identity
from reside.resident.session_variables import SESSION_VARIABLES

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    path = tmp_path / "engine"
    path.write_text("one")
    path.chmod(0o755)
    return path


def test_the_environment_is_the_stock_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FROM_OUTSIDE", "1")
    found = command_environment("pulumi", {"PULUMI_HOME": "/home"})
    assert found["FROM_OUTSIDE"] == "1"
    assert found["PULUMI_HOME"] == "/home"
    assert found["PULUMI_AUTOMATION_API"] == "true"
    assert found["PATH"].split(":") == list(dict.fromkeys(os.environ["PATH"].split(":")))


def test_an_absolute_command_puts_its_folder_first_on_the_path() -> None:
    path = command_environment("/opt/pulumi/bin/pulumi", {"PATH": "/usr/bin"})["PATH"]
    assert path == "/opt/pulumi/bin:/usr/bin"


TERMINALS = (
    {
        "TERM": "xterm-kitty", "SHLVL": "2", "PWD": "/a", "OLDPWD": "/", "WINDOWID": "4711", "KITTY_PID": "9",
        "SSH_TTY": "/dev/pts/3", "SSH_CONNECTION": "10.0.0.1 5 10.0.0.2 22", "XDG_SESSION_ID": "c2", "COLUMNS": "80",
    },
    {
        "TERM": "tmux-256color", "SHLVL": "4", "PWD": "/b", "TMUX": "/run/tmux-0/default,1,0", "TMUX_PANE": "%7",
        "TERM_SESSION_ID": "w0t1", "COLORTERM": "truecolor", "GPG_TTY": "/dev/pts/8", "INVOCATION_ID": "ab",
    },
)  # fmt: skip


def inherited(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], **added: str) -> dict[str, str]:
    """Return the environment of an engine that is started by a process with these variables."""
    with monkeypatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        return command_environment("pulumi", added)


def test_all_terminals_of_a_user_have_one_engine(monkeypatch: pytest.MonkeyPatch, binary: Path) -> None:
    one, other = (inherited(monkeypatch, terminal) for terminal in TERMINALS)
    assert one == other
    assert identity(binary, one) == identity(binary, other)
    assert not one.keys() & {*TERMINALS[0], *TERMINALS[1]}


@pytest.mark.parametrize(
    "name",
    [
        *("AWS_SESSION_TOKEN", "AWS_PROFILE", "GOOGLE_CREDENTIALS", "ARM_CLIENT_SECRET", "HTTPS_PROXY", "HOME", "LANG"),
        *("PULUMI_ACCESS_TOKEN", "KUBECONFIG", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "GIT_ASKPASS"),
        *("VSCODE_GIT_IPC_HANDLE", "BW_SESSION", "OP_SESSION_my", "KITTYCAT", "TERMINUS", "A_VARIABLE_NOBODY_KNOWS"),
    ],
)
def test_what_a_provider_may_read_counts_also_if_nobody_knows_it(
    monkeypatch: pytest.MonkeyPatch, binary: Path, name: str
) -> None:
    one, other = (inherited(monkeypatch, {name: value}) for value in ("a", "b"))
    assert (one[name], other[name]) == ("a", "b")
    assert identity(binary, one) != identity(binary, other)


def test_a_variable_that_the_program_sets_always_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert inherited(monkeypatch, {"TERM": "xterm"}, TERM="dumb")["TERM"] == "dumb"
    assert "TERM" not in inherited(monkeypatch, {"TERM": "xterm"}, TERM="xterm"), "a copy of the environment"


def test_settings_add_and_take_away_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("BUILD_ID", "7")
    own = (SESSION_VARIABLES | {"BUILD_*"}) - {"TERM"}
    found = command_environment("pulumi", {}, ResidentSettings(session_variables=own).session_variables)
    assert found["TERM"] == "xterm"
    assert "BUILD_ID" not in found


def test_a_folder_that_is_twice_on_the_path_needs_no_other_engine(binary: Path) -> None:
    one, other = (command_environment("pulumi", {"PATH": path}) for path in ("/a:/b", "/a:/b:/a:/b"))
    assert identity(binary, one) == identity(binary, other)
    swapped = command_environment("pulumi", {"PATH": "/b:/a"})
    assert identity(binary, one) != identity(binary, swapped)


@pytest.mark.parametrize("name", ["PULUMI_CONFIG_PASSPHRASE", "PULUMI_BACKEND_URL", "PULUMI_HOME", "KUBECONFIG"])
def test_variables_that_affect_operations_need_another_engine(binary: Path, name: str) -> None:
    one, other = (identity(binary, command_environment("pulumi", {name: value})) for value in ("a", "b"))
    assert one != other


def test_another_binary_needs_another_engine(binary: Path) -> None:
    before = identity(binary, {})
    binary.write_text("another")
    assert identity(binary, {}) != before


def test_the_identity_is_a_hash(binary: Path) -> None:
    assert re.fullmatch("[0-9a-f]{32}", identity(binary, {"PULUMI_CONFIG_PASSPHRASE": "hunter2"}))


def test_a_missing_binary_is_named_with_the_cure() -> None:
    with pytest.raises(EngineUnavailable, match="no-such-engine is missing: run `make tools`"):
        find_binary("no-such-engine", {"PATH": "/nowhere"})
