"""`reside secret` takes a value from a prompt, standard input, a file or an editor, and shows it nowhere."""

from __future__ import annotations

import io
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from rich.console import Console
from support.eventually import eventually_sync

from reside.cli import listing, output
from reside.cli.listing import ListOptions
from reside.cli.secret_input import edited, editor_command, is_in_memory, read_given
from reside.cli.secrets import COLUMNS, few, find_keeper
from reside.model.errors import InvalidInput
from reside.model.secret_contract import MAX_VALUE_BYTES, SECRET_CONTRACT, SECRET_IDENTITY

VALUE = "hunter2 and more"
ROOT = Path(__file__).parents[3]


def standard_input(monkeypatch: pytest.MonkeyPatch, content: bytes, *, is_terminal: bool = False) -> None:
    stream = io.TextIOWrapper(io.BytesIO(content))
    monkeypatch.setattr(stream, "isatty", lambda: is_terminal, raising=False)
    monkeypatch.setattr(sys, "stdin", stream)


def test_a_value_as_an_argument_is_refused_without_showing_it() -> None:
    with pytest.raises(InvalidInput, match="never an argument") as refused:
        read_given("db", VALUE, None)
    assert VALUE not in str(refused.value)


def test_a_value_comes_from_standard_input_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    standard_input(monkeypatch, VALUE.encode())
    assert read_given("db", "-", None) == VALUE
    assert capsys.readouterr() == ("", "")
    standard_input(monkeypatch, f"{VALUE}\n".encode())
    assert read_given("db", "-", None) == f"{VALUE}\n"
    said = capsys.readouterr()
    assert "ends with a line break" in said.err
    assert VALUE not in said.out + said.err


def test_a_value_comes_from_a_file_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "value"
    file.write_bytes(b"-----BEGIN KEY-----\r\nabc\n")
    assert read_given("db", None, file) == "-----BEGIN KEY-----\r\nabc\n"


def test_the_prompt_asks_twice_and_does_not_echo(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, object]] = []
    standard_input(monkeypatch, b"", is_terminal=True)
    monkeypatch.setattr(typer, "prompt", lambda text, **how: asked.append({"text": text, **how}) or VALUE)
    assert read_given("db", None, None) == VALUE
    assert asked == [{"text": "value of db", "hide_input": True, "confirmation_prompt": True, "err": True}]


@pytest.mark.parametrize(
    ("content", "text"),
    [(b"", "is empty"), (b"\xff" + VALUE.encode(), "not UTF-8"), (b"x" * (MAX_VALUE_BYTES + 1), "more than 65536")],
    ids=["empty", "binary", "long"],
)
def test_what_no_secret_can_have_is_refused_without_showing_it(
    content: bytes, text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "value").write_bytes(content)
    standard_input(monkeypatch, content)
    for given in (("-", None), (None, tmp_path / "value")):
        with pytest.raises(InvalidInput, match=text) as refused:
            read_given("db", *given)
        assert VALUE not in str(refused.value)


def test_without_a_terminal_the_error_says_how_to_give_the_value(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    standard_input(monkeypatch, VALUE.encode())
    with pytest.raises(InvalidInput, match="no terminal to ask for the value: use `-`"):
        read_given("db", None, None)
    with pytest.raises(InvalidInput, match="not both"):
        read_given("db", "-", tmp_path)
    with pytest.raises(InvalidInput, match=r"absent can't be read: No such file"):
        read_given("db", None, tmp_path / "absent")
    with pytest.raises(InvalidInput, match="Is a directory"):
        read_given("db", None, tmp_path)


def editor(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    """Make a shell script the editor; `$1` is the file."""
    program = folder / "an editor"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"'{program}'")


def test_an_editor_gets_a_private_file_that_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    script = f'cat "$1" > {seen}.before; stat -c "%a %n" "$1" "$(dirname "$1")" > {seen}; echo new > "$1"; touch "$1~"'
    editor(monkeypatch, tmp_path, script)
    assert edited("db.password", VALUE) == "new"
    assert Path(f"{seen}.before").read_text() == VALUE
    (file, folder) = [line.split(" ", 1) for line in seen.read_text().splitlines()]
    assert (file[0], folder[0]) == ("600", "700")
    assert file[1] == f"{folder[1]}/db.password"
    assert not Path(folder[1]).exists()


def test_a_line_break_that_the_value_had_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    editor(monkeypatch, tmp_path, 'echo more >> "$1"')
    assert edited("db", "one\n") == "one\nmore\n"
    editor(monkeypatch, tmp_path, ":")
    assert edited("db", "one\n\n") == "one\n\n"
    assert edited("db", "one") == "one"


@pytest.mark.parametrize(
    ("script", "error", "text"),
    [
        ("exit 3", InvalidInput, "failed with exit code 3: nothing is changed"),
        ('rm "$1"', InvalidInput, "can't be read"),
        (': > "$1"', InvalidInput, "is empty"),
        ("kill -INT $$", KeyboardInterrupt, "^$"),
    ],
)
def test_an_editor_that_fails_leaves_nothing(
    script: str, error: type[BaseException], text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    editor(monkeypatch, tmp_path, f'echo "$1" > {tmp_path}/file; {script}')
    with pytest.raises(error, match=text) as refused:
        edited("db", VALUE)
    assert VALUE not in str(refused.value)
    assert not Path((tmp_path / "file").read_text().strip()).parent.exists()


def test_the_users_editor_is_taken_with_its_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    assert editor_command() == ["vi"]
    monkeypatch.setenv("EDITOR", "emacs -nw")
    assert editor_command() == ["emacs", "-nw"]
    monkeypatch.setenv("VISUAL", "code --wait")
    assert editor_command() == ["code", "--wait"]
    monkeypatch.setenv("VISUAL", "'code")
    with pytest.raises(InvalidInput, match="open quotation"):
        editor_command()
    monkeypatch.setenv("VISUAL", "/no/such/editor")
    with pytest.raises(InvalidInput, match="can't be started: No such file"):
        edited("db", VALUE)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_whole_group_removes_the_file(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As a terminal sends Ctrl-C: to the command and to the editor."""
    editor(monkeypatch, tmp_path, f'echo "$1" > {tmp_path}/draft; mv {tmp_path}/draft {tmp_path}/file; exec sleep 300')
    program = f"from reside.cli.secret_input import edited; edited('db', {VALUE!r})"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    running = subprocess.Popen(
        [sys.executable, "-c", program], env=environment, start_new_session=True, stderr=subprocess.PIPE
    )
    try:
        eventually_sync("the editor", (tmp_path / "file").exists)
        file = Path((tmp_path / "file").read_text().strip())
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        os.killpg(running.pid, number)
        _, said = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode != 0
    assert VALUE.encode() not in said
    assert not file.parent.exists()


def test_a_folder_is_in_memory_if_its_file_system_is(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text("/dev/sda / ext4 rw 0 0\ntmpfs /run tmpfs rw 0 0\n/dev/sdb /run/disk xfs rw 0 0\nodd\n")
    assert is_in_memory(Path("/run/own"), mounts)
    assert not is_in_memory(Path("/run/disk/own"), mounts)
    assert not is_in_memory(Path("/home"), mounts)
    assert not is_in_memory(Path("/run"), tmp_path / "absent")


def test_only_the_shipped_replica_gets_values() -> None:
    """A replica of another identity that implements the contract could collect what people set."""
    rows = [
        {"name": "secret", "identity": "registry.example/secret", "implements": [SECRET_CONTRACT]},
        {"name": "secret-1", "identity": SECRET_IDENTITY, "implements": [SECRET_CONTRACT]},
    ]
    assert find_keeper(rows) == rows[1]
    with pytest.raises(InvalidInput, match="load replicas/secret"):
        find_keeper(rows[:1])


def test_a_list_fits_80_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "console", Console(width=80))
    accounts = ", ".join(["co_z" + "1" * 30] * 3)
    row = {"name": "database-password", "version": 12, "at": "2026-11-25 18:00:00Z", "readers": accounts}
    listing.show([row | {"writers": "ada, bob"}], COLUMNS, ListOptions())
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "co_z111111111111…" in lines[1]
    assert lines[1].startswith("database-password  12 ")


def test_a_cell_names_two_accounts_and_counts_the_others() -> None:
    assert [few(names) for names in ("ada", "ada, bob", "ada, bob, eve, kim")] == ["ada", "ada, bob", "ada, bob +2"]
