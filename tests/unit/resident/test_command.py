"""A command on a fake engine: the caller's result, and when engines start and stop."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pulumi.automation import PulumiCommand
from pulumi.automation.errors import CommandError, StackNotFoundError
from unit.resident.fake_engine import fake_engine

from reside.resident import EngineDied, EngineUnavailable, ResidentCommand, ResidentSettings
from reside.resident.sessions import session_members

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "a-passphrase-that-nobody-may-see"


@pytest.fixture
def settings(tmp_path: Path) -> ResidentSettings:
    return ResidentSettings(fake_engine(tmp_path), "parent", tmp_path / "engines", start_seconds=15)


@pytest.fixture
def command(settings: ResidentSettings) -> Iterator[ResidentCommand]:
    with ResidentCommand(settings) as found:
        yield found


def run(command: ResidentCommand, *args: str, **environment: str) -> str:
    return command.run(list(args), "/", environment).stdout


def tell(command: ResidentCommand, **environment: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(command, "tell", **environment))
    return found


def test_output_comes_as_lines_and_to_the_callbacks(command: ResidentCommand) -> None:
    out: list[str] = []
    err: list[str] = []
    result = command.run(["echo", "a\nb", "c \n", "err:d\n"], "/", {}, out.append, err.append)
    assert (result.stdout, result.stderr, result.code) == ("a\nbc", "d", 0)
    assert (out, err) == (["a", "bc"], ["d"])


def test_it_runs_without_prompts_in_the_requested_folder(command: ResidentCommand, tmp_path: Path) -> None:
    printed = json.loads(command.run(["tell", "--", "x"], str(tmp_path), {}).stdout)
    assert printed["args"] == ["--non-interactive", "tell", "--", "x"]
    assert printed["cwd"] == str(tmp_path)
    printed = json.loads(command.run(["tell", "--non-interactive"], str(tmp_path), {}).stdout)
    assert printed["args"] == ["tell", "--non-interactive"]


def test_a_failure_is_the_automation_apis_error(command: ResidentCommand) -> None:
    with pytest.raises(StackNotFoundError):
        run(command, "fail", "error: no stack named 'x' found")
    with pytest.raises(CommandError, match="something else"):
        run(command, "fail", "something else")


def test_commands_with_one_environment_share_an_engine(command: ResidentCommand) -> None:
    first, again, other = tell(command, A="1"), tell(command, A="1"), tell(command, A="2")
    assert first["pid"] == again["pid"] != other["pid"]
    assert (first["env"]["A"], other["env"]["A"]) == ("1", "2")


def test_many_threads_start_one_engine_of_a_user(settings: ResidentSettings) -> None:
    commands = [ResidentCommand(replace(settings, lifetime="user")) for _ in range(6)]
    with ThreadPoolExecutor(6) as threads:
        pids = {printed["pid"] for printed in threads.map(tell, commands)}
    assert len(pids) == 1
    os.kill(pids.pop(), signal.SIGKILL)


def test_two_owners_never_share_an_engine(settings: ResidentSettings) -> None:
    with ResidentCommand(settings) as one, ResidentCommand(settings) as other:
        assert tell(one)["pid"] != tell(other)["pid"]


def test_an_owners_engine_ends_with_it(settings: ResidentSettings) -> None:
    with ResidentCommand(settings) as one:
        pid = tell(one)["pid"]
        assert session_members(pid) == [pid]
    assert session_members(pid) == []
    with pytest.raises(EngineUnavailable, match="closed"):
        tell(one)


def test_an_owner_that_is_killed_ends_its_engine(settings: ResidentSettings) -> None:
    program = (
        "import sys; from pathlib import Path; from reside.resident import *;"
        f"c = ResidentCommand(ResidentSettings({settings.engine!r}, 'parent', Path({str(settings.folder)!r})));"
        "print(c.run(['tell'], '/', {}).stdout, flush=True); sys.stdin.read()"
    )
    owner = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert owner.stdout is not None
    pid = json.loads(owner.stdout.readline())["pid"]
    watch = os.pidfd_open(pid)
    owner.kill()
    owner.communicate()
    assert select.select([watch], [], [], 60)[0]


def test_a_killed_engine_is_replaced_at_the_next_command(command: ResidentCommand) -> None:
    pid = tell(command)["pid"]
    os.kill(pid, signal.SIGKILL)
    assert tell(command)["pid"] != pid


def test_an_engine_that_ends_before_the_command_begins_is_replaced(command: ResidentCommand, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    marker.touch()
    assert run(command, "leave", str(marker)) == "answered"
    assert not marker.exists()


def test_a_command_is_retried_while_an_engine_drains(command: ResidentCommand, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    marker.write_text("xxx")
    assert run(command, "refuse", str(marker)) == "answered"
    marker.write_text("x" * 50)
    with pytest.raises(EngineUnavailable, match="does not begin the command: draining"):
        run(command, "refuse", str(marker))


def test_an_engine_that_dies_during_a_command_is_an_error(command: ResidentCommand) -> None:
    with pytest.raises(EngineDied, match=r"ended during `pulumi die`") as caught:
        run(command, "die", PULUMI_CONFIG_PASSPHRASE=SECRET)
    assert isinstance(caught.value, CommandError)
    assert caught.value.result.stdout == "half a li"
    assert caught.value.result.code < 0
    assert SECRET not in str(caught.value)


def test_unserved_commands_run_in_the_stock_command_line(command: ResidentCommand, tmp_path: Path) -> None:
    stock = tmp_path / "pulumi"
    stock.write_text('#!/bin/sh\necho "stock: $*"\n')
    stock.chmod(0o755)
    command.command = str(stock)
    assert run(command, "version") == "stock: --non-interactive version"


def test_the_version_is_the_engines(command: ResidentCommand) -> None:
    run(command, "echo")
    command.command = "no-such-command-line"
    assert str(command.version) == "3.259.0"


@pytest.mark.parametrize(
    ("fault", "words"),
    [("ends", r"ended with code 2; .*panic: no such backend"), ("hangs", "was not ready within 1 s")],
)
def test_an_engine_that_does_not_start_is_reported(settings: ResidentSettings, fault: str, words: str) -> None:
    with ResidentCommand(replace(settings, start_seconds=1 if fault == "hangs" else 15)) as command:
        for _ in range(2):  # the second time without a new attempt
            with pytest.raises(EngineUnavailable, match="(?s)" + words) as caught:
                run(command, "echo", FAKE_ENGINE_FAULT=fault, PULUMI_CONFIG_PASSPHRASE=SECRET)
            assert SECRET not in str(caught.value)


def test_the_fallback_is_logged_as_a_warning(
    settings: ResidentSettings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stock = tmp_path / "pulumi"
    stock.write_text("#!/bin/sh\necho stock\n")
    stock.chmod(0o755)
    command = ResidentCommand(replace(settings, engine="no-such-engine", fallback=True), str(stock))
    assert run(command, "echo") == "stock"
    assert "no-such-engine is missing" in caplog.text


def test_a_callback_that_raises_does_not_stop_the_command(command: ResidentCommand) -> None:
    seen: list[str] = []

    def receive(line: str) -> None:
        seen.append(line)
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        command.run(["echo", "a\n", "b\n"], "/", {}, receive)
    assert seen == ["a"]


@pytest.fixture
def interrupt_key() -> Iterator[None]:
    """Have SIGINT raise KeyboardInterrupt: a shell ignores it in background jobs."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupt_key")
@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_key_reaches_the_engine_and_is_raised_at_the_end(command: ResidentCommand, times: int) -> None:
    """The first interrupt is graceful, the second ends the command; in both cases its output is read to the end."""
    seen: list[str] = []

    def receive(line: str) -> None:
        seen.append(line)
        if len(seen) <= times:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        command.run(["wait", str(times)], "/", {}, receive)
    assert seen == ["waiting", *["interrupt"] * times]


def test_another_thread_may_interrupt(command: ResidentCommand) -> None:
    call = command.engine({}).open(["wait", "1"], "/")
    waiting = threading.Event()
    threading.Thread(target=lambda: (waiting.wait(), call.interrupt())).start()
    result = call.finish(lambda line: waiting.set())
    assert (result.stdout, result.code) == ("waiting\ninterrupt", 1)


def test_a_folder_that_others_may_use_is_refused(settings: ResidentSettings) -> None:
    with ResidentCommand(settings) as command:
        command.engine({}).folder.mkdir(parents=True, mode=0o755)
        with pytest.raises(EngineUnavailable, match="closed to others"):
            run(command, "echo")


def test_the_path_of_the_folder_may_be_long(settings: ResidentSettings, tmp_path: Path) -> None:
    """The path of a socket may have 107 bytes."""
    with ResidentCommand(replace(settings, folder=tmp_path / ("deep" * 30))) as command:
        assert run(command, "echo", "there") == "there"


def test_it_replaces_pulumis_own_command() -> None:
    assert isinstance(ResidentCommand(), PulumiCommand)
