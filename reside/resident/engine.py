"""The engine of one identity: found or started, and asked to run commands.

Invariant: one connection a command, made by the caller's thread; there is no state between commands but the started
process. So any number of threads may run commands at once.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from typing import TYPE_CHECKING, Any

from pulumi.automation import CommandResult

from reside.resident import starting
from reside.resident.environment import identity
from reside.resident.errors import DIED, EngineDied, EngineUnavailable, Unserved
from reside.resident.output import Lines
from reside.resident.sessions import end_session, reap, session_members
from reside.resident.wire import Connection

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pulumi.automation import OnOutput

    from reside.resident.settings import ResidentSettings

_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds between attempts to have a command begun, where engines come and go."""
_STOP_SECONDS = 25.0
"""How long a graceful end may take; the engine gives what runs 20 s."""
_REST_SECONDS = 30.0
"""After a failed start no other is tried for so long: it would cost each command the time that a start may take."""


class Engine:
    """The engine for a binary and an environment, as seen by one process.

    Args:
        settings: How it lives. With lifetime ``parent`` this object is the only one that uses it.
        binary: Path of ``reside-engine``.
        environment: The engine's whole environment.
    """

    def __init__(self, settings: ResidentSettings, binary: Path, environment: Mapping[str, str]) -> None:
        self._settings = settings
        self._binary = binary
        self._environment = environment
        self.folder = settings.base / identity(binary, environment)
        own = settings.lifetime == "parent"
        self.socket = self.folder / (f"engine.{secrets.token_hex(6)}.sock" if own else "engine.sock")
        self._process: subprocess.Popen[bytes] | None = None
        self._own = own
        self._lock = threading.Lock()
        self._closed = False
        self._failed: tuple[float, EngineUnavailable] | None = None

    def open(self, arguments: Sequence[str], cwd: str, stdin: str = "") -> Call:
        """Have a command begun; starts the engine if none is there.

        Raises:
            Unserved: The engine leaves this command to the stock command line; nothing has happened.
            EngineUnavailable: No engine comes up, or engines end before they begin.
        """
        why = ""
        for pause in (*_PAUSES, None):
            connection = self._connect()
            call = Call(connection, self.folder, arguments)
            try:
                connection.request(arguments, cwd, stdin)
                answer = connection.receive() or {"retry": "it hung up"}
            except (BrokenPipeError, ConnectionResetError):
                answer = {"retry": "it hung up"}
            except BaseException:
                connection.close()
                raise
            if "begun" in answer:
                return call
            connection.close()
            if "unserved" in answer:
                raise Unserved(answer["unserved"])
            why = answer.get("retry") or "it does not speak our protocol"
            if pause is not None:
                time.sleep(pause)
        raise EngineUnavailable(f"the engine begins no command: {why}; see {self.folder / starting.LOG}")

    def status(self) -> dict[str, Any]:
        """What the engine says of itself: version, operations, providers, memory (see docs/resident-engine.md)."""
        result = self.open(["--engine-status"], "/").finish()
        status: dict[str, Any] = json.loads(result.stdout)
        return status

    def close(self) -> None:
        """End an engine of lifetime ``parent``: what runs may finish, then it is interrupted, then killed."""
        with self._lock:
            self._closed = True
        process = self._process
        if process is None or not self._own:
            return
        if process.stdin is not None:
            process.stdin.close()
        starting.until(lambda: not session_members(process.pid), _STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End an engine of lifetime ``parent`` now, with its successors and providers; the next command starts one."""
        process = self._process
        if process is None or not self._own:
            return
        end_session(process.pid)
        process.wait()

    def _connect(self) -> Connection:
        found = self._try()
        if found is not None:
            return found
        starting.private_folder(self.folder)
        with starting.starting_lock(self.folder, self._settings.start_seconds):
            found = self._try()  # another thread or process may have started it in the meantime
            if found is not None:
                return found
            with self._lock:
                self._start()
            return Connection.open(self.socket)

    def _start(self) -> None:
        if self._closed:
            raise EngineUnavailable("the engine was closed")
        if self._failed is not None and time.monotonic() < self._failed[0] + _REST_SECONDS:
            raise EngineUnavailable(str(self._failed[1])) from self._failed[1]
        self._sweep()
        try:
            self._process = starting.start(
                self._binary, self.folder, self.socket.name, self._environment, self._settings
            )
            self._failed = None
            threading.Thread(target=reap, args=(self._process,), name="resident-engine", daemon=True).start()
        except EngineUnavailable as error:
            self._failed = time.monotonic(), error
            raise

    def _try(self) -> Connection | None:
        try:
            return Connection.open(self.socket)
        except (FileNotFoundError, ConnectionRefusedError):
            return None

    def _sweep(self) -> None:
        """Remove the sockets of owners that died: nobody listens there, whatever process id spaces there are."""
        for socket in self.folder.glob("engine.*.sock"):
            try:
                Connection.open(socket).close()
            except ConnectionRefusedError:
                socket.unlink(missing_ok=True)
            except FileNotFoundError:
                continue  # its engine has just ended


class Call:
    """One command that an engine runs."""

    def __init__(self, connection: Connection, folder: Path, arguments: Sequence[str]) -> None:
        self._connection = connection
        self._folder = folder
        self._arguments = arguments

    def interrupt(self) -> None:
        """Ask the command to end: gracefully at the first call, at once at the second. May be called by any thread."""
        self._connection.interrupt()

    def finish(self, on_output: OnOutput | None = None, on_error: OnOutput | None = None) -> CommandResult:
        """Wait for the end of the command; its lines go to the callbacks, on this thread, as they come.

        A KeyboardInterrupt is passed on, as a terminal would to the stock command line, and raised when the command
        has ended; the second one terminates the command; the third no longer waits.

        Raises:
            EngineDied: The engine ended before the command.
        """
        streams = {"stdout": Lines(on_output), "stderr": Lines(on_error)}
        interrupts: list[KeyboardInterrupt] = []
        try:
            while True:
                try:
                    code = self._read(streams)
                    break
                except KeyboardInterrupt as interrupt:
                    interrupts.append(interrupt)
                    if len(interrupts) > 2:  # noqa: PLR2004 - see above
                        raise
                    self.interrupt()
            obituary = self._obituary() if code is None else ""
        finally:
            self._connection.close()
        stdout, stderr = streams["stdout"].end(), streams["stderr"].end()
        if interrupts:
            raise interrupts[0]
        failure = streams["stdout"].failure or streams["stderr"].failure
        if failure is not None:
            raise failure
        if code is None:
            raise EngineDied(CommandResult(stdout, f"{stderr}\n{obituary}".lstrip(), DIED))
        return CommandResult(stdout, stderr, code)

    def _read(self, streams: Mapping[str, Lines]) -> int | None:
        """Read up to the exit code; None at the end of the stream."""
        while (message := self._connection.receive()) is not None:
            for name, lines in streams.items():
                if name in message:
                    lines.feed(message[name])
            if "exit" in message:
                return int(message["exit"])
        return None

    def _obituary(self) -> str:
        verb = next((word for word in self._arguments if not word.startswith("-")), "the command")
        return (
            f"error: the resident engine (process {self._connection.pid}) ended in the middle of `pulumi {verb}`; "
            f"the next operation on the stack goes on from the state that was saved; see {self._folder / starting.LOG}"
        )
