"""Shells complete commands and options; only the part that the line names is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reside.cli import main
from reside.cli.main import completed_words

PROGRAM = Path(sys.executable).parent


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join([str(PROGRAM), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **more}


def in_bash(*words: str) -> list[str]:
    """Return what bash offers for the last word."""
    line = " ".join(f"'{word}'" for word in words)
    script = f"""
        source <(reside completion bash)
        COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}
        "$(complete -p reside | sed 's/.*-F //; s/ .*//')" reside
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "-euc", script], env=environment(), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("reside", "rep"), ["replica"]),
        (("reside", "replica", "lo"), ["load", "logs"]),
        (("reside", "replica", "history", "greeter", "--wi"), ["--wide"]),
        (("reside", "explain", "--output", "y"), ["yaml"]),
        (("reside", "replica", "zz"), []),
    ],
)
def test_bash_completes_commands_options_and_values(words: tuple[str, ...], offered: list[str]) -> None:
    assert sorted(in_bash(*words)) == sorted(offered)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_ask_in_their_way(shell: str) -> None:
    asked = {main.COMPLETION_VARIABLE: f"complete_{shell}", "_TYPER_COMPLETE_ARGS": "reside replica lo"}
    asked["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    command = [str(PROGRAM / "reside")]
    done = subprocess.run(command, env=environment(**asked), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "load" in done.stdout
    assert "logs" in done.stdout
    assert "list" not in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script_that_calls_the_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"{main.COMPLETION_VARIABLE}=complete_{shell}" in script
    assert "reside" in script


def test_an_unknown_shell_is_invalid_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["completion", "csh"]) == 2
    assert "csh" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({}, None),
        ({"COMP_WORDS": "reside replica"}, None),
        ({main.COMPLETION_VARIABLE: "complete_bash", "COMP_WORDS": "reside\nreplica\nlo"}, ["replica", "lo"]),
        ({main.COMPLETION_VARIABLE: "complete_zsh", "_TYPER_COMPLETE_ARGS": "reside rep"}, ["rep"]),
        ({main.COMPLETION_VARIABLE: "complete_zsh"}, []),
    ],
)
def test_the_words_come_from_the_shell(variables: dict[str, str], words: list[str] | None) -> None:
    assert completed_words(variables) == words


def test_the_completion_of_a_part_imports_no_part() -> None:
    code = "import sys; from reside.cli.main import run; run([]); sys.exit('reside.cli.replica' in sys.modules)"
    asked = {main.COMPLETION_VARIABLE: "complete_bash", "COMP_WORDS": "reside\nrep", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(**asked), capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "replica\n")
