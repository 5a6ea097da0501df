"""The engine of one identity: connects to it, starts it if necessary, and runs commands in it.

Invariant: each command has a connection of its own, made on the caller's thread. The only state between commands is the
process that was started. So any number of threads may run commands at the same time.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from typing import TYPE_CHECKING, Any

from reside.resident import starting
from reside.resident.environment import identity
from reside.resident.errors import DIED, EngineEnded, EngineUnavailable, Unserved
from reside.resident.output import Lines, Output
from reside.resident.sessions import end_session, reap, session_members
from reside.resident.wire import Connection

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pulumi.automation import OnOutput

    from reside.resident.settings import ResidentSettings

_RETRY_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds between attempts to begin a command; an attempt fails if the engine is just ending."""
_STOP_SECONDS = 25.0
"""How long the engine may take to end gracefully; it gives running commands 20 s."""
_RESTART_SECONDS = 30.0
"""Pause after a failed start, during which commands fail immediately instead of waiting for another failed start."""


class Engine:
    """The engine for one binary and one environment.

    Args:
        settings: its settings. With lifetime `parent`, only this object uses the engine.
        binary: the path of `reside-engine`.
        environment: the complete environment of the engine.
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
        """Begin a command; starts the engine if it does not run.

        Args:
            arguments: the arguments of `pulumi`.
            cwd: the absolute path of the working directory.
            stdin: the complete standard input.

        Raises:
            Unserved: the stock command line must run this command; nothing was done.
            EngineUnavailable: the engine cannot be started, or ends before it begins the command.
        """
        why = ""
        for pause in (*_RETRY_PAUSES, None):
            connection = self._connect()
            call = Call(connection, self.folder, arguments)
            try:
                connection.request(arguments, cwd, stdin)
                answer = connection.receive() or {"retry": "it closed the connection"}
            except (BrokenPipeError, ConnectionResetError):
                answer = {"retry": "it closed the connection"}
            except BaseException:
                connection.close()
                raise
            if "begun" in answer:
                return call
            connection.close()
            if "unserved" in answer:
                raise Unserved(answer["unserved"])
            why = answer.get("retry") or "it uses another protocol"
            if pause is not None:
                time.sleep(pause)
        raise EngineUnavailable(f"the engine does not begin the command: {why}; see {self.folder / starting.LOG}")

    def status(self) -> dict[str, Any]:
        """Return version, operations, providers and memory of the engine (see docs/resident-engine.md)."""
        result = self.open(["--engine-status"], "/").finish()
        status: dict[str, Any] = json.loads(result.stdout)
        return status

    def close(self) -> None:
        """Stop an engine of lifetime `parent`. After a time limit, running commands are interrupted, then killed."""
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
        """Kill an engine of lifetime `parent`, with its successors and providers; the next command starts a new one."""
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
            found = self._try()  # another thread or process may have started it meanwhile
            if found is not None:
                return found
            with self._lock:
                self._start()
            return Connection.open(self.socket)

    def _start(self) -> None:
        if self._closed:
            raise EngineUnavailable("the engine was closed")
        if self._failed is not None and time.monotonic() < self._failed[0] + _RESTART_SECONDS:
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
        """Remove the sockets of engines that died; a refused connection shows it across PID namespaces, too."""
        for socket in self.folder.glob("engine.*.sock"):
            try:
                Connection.open(socket).close()
            except ConnectionRefusedError:
                socket.unlink(missing_ok=True)
            except FileNotFoundError:
                continue  # its engine has just removed it


class Call:
    """One command that an engine runs."""

    def __init__(self, connection: Connection, folder: Path, arguments: Sequence[str]) -> None:
        self._connection = connection
        self._folder = folder
        self._arguments = arguments

    def interrupt(self) -> None:
        """Interrupt the command: the first call cancels it gracefully, the second terminates it; from any thread."""
        self._connection.interrupt()

    def finish(self, on_output: OnOutput | None = None, on_error: OnOutput | None = None) -> Output:
        """Wait until the command ends; its lines are passed to the callbacks, on this thread.

        A KeyboardInterrupt interrupts the command, as a terminal does with the stock command line, and is raised when
        the command has ended. The second one terminates the command; the third is raised immediately.

        Raises:
            EngineEnded: the engine ended before the command.
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
            message = self._death_message() if code is None else ""
        finally:
            self._connection.close()
        stdout, stderr = streams["stdout"].end(), streams["stderr"].end()
        if interrupts:
            raise interrupts[0]
        failure = streams["stdout"].failure or streams["stderr"].failure
        if failure is not None:
            raise failure
        if code is None:
            raise EngineEnded(Output(stdout, f"{stderr}\n{message}".lstrip(), DIED))
        return Output(stdout, stderr, code)

    def _read(self, streams: Mapping[str, Lines]) -> int | None:
        """Read up to the exit code and return it; None if the stream ends first."""
        while (message := self._connection.receive()) is not None:
            for name, lines in streams.items():
                if name in message:
                    lines.feed(message[name])
            if "exit" in message:
                return int(message["exit"])
        return None

    def _death_message(self) -> str:
        verb = next((word for word in self._arguments if not word.startswith("-")), "the command")
        return (
            f"error: the resident engine (process {self._connection.pid}) ended during `pulumi {verb}`; "
            f"the next operation on the stack continues from the saved state; see {self._folder / starting.LOG}"
        )
