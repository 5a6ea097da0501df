"""A process that runs engine operations for the Sentinel: JSON lines in, JSON lines out.

Inline programs change process-wide state (options of the pulumi module, the asyncio logger), so they run here. The
first line on standard input holds the settings, each further one a request; the answer is any number of ``event`` lines
and one ``result`` or ``error`` line. The end of standard input, or SIGTERM, means stop: the running engine is asked to
end gracefully, once. Everything runs in the session of this process, so that its owner can end all of it.

Invariant: nothing but these lines goes to standard output; what others print there goes to standard error.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from dataclasses import asdict
from typing import IO, TYPE_CHECKING, Any

from reside.sentinel.engine.command import EngineCommand, StoppedError
from reside.sentinel.engine.errors import EngineBroken, EngineError, EngineUnavailable
from reside.sentinel.engine.operations import Operations
from reside.sentinel.engine.port import ChangeSet, StackEvent, StackSpec
from reside.sentinel.engine.settings import EngineSettings

if TYPE_CHECKING:
    from types import FrameType


class Worker:
    """Reads requests and answers them, one after the other."""

    def __init__(self, requests: IO[str], answers: IO[str]) -> None:
        """Speak over two text streams."""
        self._requests = requests
        self._answers = answers
        self._settings = EngineSettings.parse(json.loads(requests.readline()))
        self._command = EngineCommand(self._settings.pulumi)
        self._queue: queue.Queue[dict[str, Any] | None] = queue.Queue()

    def run(self) -> None:
        """Serve until the end of the requests."""
        signal.signal(signal.SIGTERM, self._stop)
        operations = Operations(self._settings, self._command)
        threading.Thread(target=self._read, daemon=True).start()
        while (request := self._queue.get()) is not None:
            self._say(self._answer(operations, request))

    def _stop(self, _signal: int, _frame: FrameType | None) -> None:
        threading.Thread(target=self._end).start()  # not in the handler: it may have interrupted a holder of the lock

    def _end(self) -> None:
        self._command.stop()
        self._queue.put(None)

    def _read(self) -> None:
        for line in self._requests:
            self._queue.put(json.loads(line))
        self._end()

    def _answer(self, operations: Operations, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"result": _perform(operations, request, self._event)}
        except EngineError as error:
            return {"error": error.details()}
        except StoppedError:
            return {"error": EngineUnavailable("the engine is stopping").details()}
        except Exception as error:  # noqa: BLE001 - the edge of the process: the owner raises it; its text may hold secrets
            place = _place(error)
            return {"error": EngineBroken(f"a bug in the engine's worker: {type(error).__name__} at {place}").details()}

    def _event(self, event: StackEvent) -> None:
        self._say({"event": asdict(event)})

    def _say(self, message: dict[str, Any]) -> None:
        self._answers.write(json.dumps(message) + "\n")
        self._answers.flush()


def _perform(operations: Operations, request: dict[str, Any], on_event: Any) -> dict[str, Any]:
    name, stack = request["operation"], request["stack"]
    if name == "export":
        return operations.export(stack)
    if name == "destroy":
        return _document(operations.destroy(stack, on_event))
    spec = StackSpec(stack, tuple(request["objects"]))
    if name == "preview":
        return _document(operations.preview(spec, on_event))
    return _document(operations.apply(spec, on_event))


def _document(changes: ChangeSet) -> dict[str, Any]:
    return asdict(changes)


def _place(error: BaseException) -> str:
    """File and line where the error was raised, without any value."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "an unknown place"  # noqa: PTH119 - a code object's name is no path


def main() -> None:
    """Take standard output for the answers alone, then serve."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    Worker(sys.stdin, answers).run()


if __name__ == "__main__":
    main()
