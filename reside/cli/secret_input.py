"""Where `reside secret` takes a value from: a prompt without echo, standard input, a file, or an editor.

No error contains a part of a value. The file for an editor has the mode 0600, in a folder of mode 0700 in memory if the
machine has one (tmpfs). The folder is removed with all that the editor has left in it, also after Ctrl-C and SIGTERM.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import typer

from reside.cli import output
from reside.model.errors import InvalidInput
from reside.model.secret_contract import MAX_VALUE_BYTES, check_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STANDARD_INPUT: Final = "-"
_MOUNTS: Final = Path("/proc/self/mounts")
_IN_MEMORY: Final = ("tmpfs", "ramfs")
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_MEMBERS_OF_MOUNT: Final = 3


def read_given(name: str, source: str | None, file: Path | None) -> str:
    """Return the value that a user gives.

    Args:
        name: name of the secret, for the prompt.
        source: `-` for standard input; None for the prompt, unless there is a file.
        file: the file to read.

    Raises:
        InvalidInput: it can't be read, or no secret can have it.
        KeyboardInterrupt: Ctrl-C has ended the prompt.
    """
    if source not in (None, STANDARD_INPUT):
        raise InvalidInput(
            "a value is never an argument: the history of the shell and the list of processes show arguments. Leave it "
            "out to be asked for it, or use `-` or --from-file; use another value than the one that was just typed"
        )
    if source is not None and file is not None:
        raise InvalidInput("give `-` or --from-file, not both")
    if file is not None:
        return check_value(_decoded(_read_file(file)))
    if source == STANDARD_INPUT:
        value = check_value(_decoded(sys.stdin.buffer.read(MAX_VALUE_BYTES + 1)))
        if value.endswith("\n"):
            output.warn("the value ends with a line break: `printf %s` writes none")
        return value
    if not sys.stdin.isatty():
        raise InvalidInput("there is no terminal to ask for the value: use `-` for standard input, or --from-file FILE")
    return check_value(_prompted(name))


def _prompted(name: str) -> str:
    try:
        value: str = typer.prompt(f"value of {name}", hide_input=True, confirmation_prompt=True, err=True)
    except typer.Abort as abort:
        if isinstance(abort.__context__, EOFError):
            raise InvalidInput("no value was given: nothing is changed") from None
        raise KeyboardInterrupt from None  # typer would end with the exit code of an error
    return value


def edited(name: str, value: str) -> str:
    """Return what a user makes of a value in an editor.

    The line break that editors add at the end is left out if the value had none.

    Raises:
        InvalidInput: there is no editor, it fails, or no secret can have the new value.
        KeyboardInterrupt: Ctrl-C has ended the editor.
    """
    with _until_the_end(), _private_folder() as folder:
        file = folder / name
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(value.encode())
        _run_editor(file)
        found = _decoded(_read_file(file))
    if not value.endswith("\n"):
        found = found.removesuffix("\n")
    return check_value(found)


def editor_command() -> list[str]:
    """Return the editor of the user, with its arguments.

    Raises:
        InvalidInput: the variable is malformed.
    """
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        return shlex.split(chosen)
    except ValueError:
        raise InvalidInput("$VISUAL or $EDITOR is not a command: it has an open quotation") from None


def is_in_memory(folder: Path, mounts: Path = _MOUNTS) -> bool:
    """Return whether the files of a folder are in memory only."""
    try:
        lines = mounts.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return False
    found = [line.split() for line in lines]
    types = {Path(parts[1]): parts[2] for parts in found if len(parts) >= _MEMBERS_OF_MOUNT}
    resolved = folder.resolve()
    nearest = next((place for place in (resolved, *resolved.parents) if place in types), None)
    return nearest is not None and types[nearest] in _IN_MEMORY


def _run_editor(file: Path) -> None:
    command = [*editor_command(), str(file)]
    try:
        ended = subprocess.run(command, check=False)
    except OSError as error:
        raise InvalidInput(f"the editor {command[0]} can't be started: {error.strerror}; set $EDITOR") from None
    if ended.returncode in (-signal.SIGINT, 128 + signal.SIGINT):
        raise KeyboardInterrupt
    if ended.returncode != 0:
        raise InvalidInput(f"the editor {command[0]} failed with exit code {ended.returncode}: nothing is changed")


@contextmanager
def _private_folder() -> Iterator[Path]:
    places = [Path(place) for place in (os.environ.get("XDG_RUNTIME_DIR"), "/dev/shm") if place]  # noqa: S108 - private
    place = next((p for p in places if p.is_dir() and os.access(p, os.W_OK) and is_in_memory(p)), None)
    if place is None:
        output.warn("there is no file system in memory: the value is on a disk while it is edited")
    folder = Path(tempfile.mkdtemp(prefix="reside-secret-", dir=place))  # mode 0700
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def _until_the_end() -> Iterator[None]:
    """Leave Ctrl-C to the editor, and end by an exception at other signals, so that the folder is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[signal.Signals, Callable[[int, Any], Any]] = {signal.SIGINT: _ignore}
    handlers |= dict.fromkeys(_ENDING, _end)
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignore(_number: int, _frame: Any) -> None:
    """Do nothing; unlike `SIG_IGN`, the editor does not inherit it."""


def _end(number: int, _frame: Any) -> NoReturn:
    raise SystemExit(128 + number)


def _read_file(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_VALUE_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"{file} can't be read: {error.strerror}") from None


def _decoded(content: bytes) -> str:
    """Return the text of a value; one that is too long is as long as the content that was read."""
    if len(content) > MAX_VALUE_BYTES:
        raise InvalidInput(
            f"the value has more than {MAX_VALUE_BYTES} bytes: store large data elsewhere, and its key as the secret"
        )
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise InvalidInput("the value is not UTF-8: encode it in base64") from None
