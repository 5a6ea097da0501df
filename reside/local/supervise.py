"""Start and stop the processes of one local cluster.

A process is started in its own session, so that it continues after the command that started it ends. A record contains
the process's identity and a digest of its arguments. A component is current only if exactly this process runs, was
started with the arguments required now, and is in the existing namespaces of the cluster; otherwise it is restarted.
"""

import hashlib
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from reside.common.files import write_private
from reside.common.polling import wait_until
from reside.common.processes import ProcessId, identify, is_alive
from reside.local.components import Component
from reside.local.errors import ComponentFailedError, StuckProcessError
from reside.local.processes import MARK, leads_session, marked

TERM_SECONDS = 10.0
KILL_SECONDS = 10.0
_SEARCHES = 5  # processes that end start others, e.g. containerd the clean-up of a shim
_TAIL_LINES = 15
_TAIL_BYTES = 16_000
_LOG_LIMIT = 50_000_000  # bytes; a longer log is rotated at the next start
_INHERITED = ("PATH", "HOME", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR")


@dataclass(frozen=True)
class Record:
    """A process that was started for a component.

    Args:
        process: identity of the process.
        digest: digest of what it was started with.
    """

    process: ProcessId
    digest: str


@dataclass(frozen=True)
class Place:
    """The namespaces of a node.

    Args:
        enter: prefix of commands that run in them.
        token: identifies them; a process in older ones is not current.
    """

    enter: Sequence[str]
    token: str


_OUTSIDE = Place((), "")


@dataclass(frozen=True)
class Supervisor:
    """The processes of one local cluster.

    Args:
        state: state folder of the local cluster; marks its processes.
        pids: folder of records.
        logs: folder of logs.
        search: PATH of the processes.
        places: namespaces of each node, by its number; none if there is no node, or if nothing is started.
    """

    state: Path
    pids: Path
    logs: Path
    search: str
    places: Mapping[int, Place] = field(default_factory=dict)

    def log(self, component: str) -> Path:
        """Return the log file of a component."""
        return self.logs / f"{component}.log"

    def running(self, name: str) -> ProcessId | None:
        """Return the running process of a component, even if it was started with other arguments."""
        record = self._record(name)
        return record.process if record is not None and is_alive(record.process) else None

    def is_current(self, component: Component) -> bool:
        """Return whether the component runs with the arguments that it would be started with now."""
        record = self._record(component.name)
        return record is not None and is_alive(record.process) and record.digest == self._digest(component)

    def start(self, component: Component) -> None:
        """Start a component that does not run."""
        for folder in (self.pids, self.logs):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        log = self.log(component.name)
        if log.exists() and log.stat().st_size > _LOG_LIMIT:
            log.replace(log.with_suffix(".log.1"))
        argv = self._argv(component)
        pid = os.posix_spawn(
            shutil.which(argv[0], path=self.search) or argv[0],
            argv,
            self._environment(component),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
        process = identify(pid)
        if process is None:
            raise self.failure(component.name, "exited immediately")
        self._write(component.name, Record(process, self._digest(component)))

    def stop(self, names: Iterable[str]) -> list[str]:
        """Stop these components together: SIGTERM, then SIGKILL after a deadline.

        Returns:
            the names of those that ran.
        """
        found = {name: process for name in names if (process := self.running(name)) is not None}
        end_processes(found.values())
        for name in found:
            self._path(name).unlink(missing_ok=True)
        return list(found)

    def end_unrecorded_processes(self) -> None:
        """End processes that were started for this local cluster and have no record."""
        recorded = {record.process for path in self.pids.glob("*.json") if (record := self._record(path.stem))}
        unrecorded = [found for found in marked(self.state) if found not in recorded and leads_session(found.pid)]
        end_processes(unrecorded)

    def failure(self, name: str, reason: str) -> ComponentFailedError:
        """Return the error of a component that ended or is not healthy, with the end of its log."""
        log = self.log(name)
        tail = ""
        if log.exists():
            with log.open("rb") as handle:
                handle.seek(max(0, log.stat().st_size - _TAIL_BYTES))
                tail = "\n".join(handle.read().decode(errors="replace").splitlines()[-_TAIL_LINES:])
        return ComponentFailedError(name, reason, log, tail)

    def _argv(self, component: Component) -> list[str]:
        return [*self._place(component).enter, *component.argv]

    def _place(self, component: Component) -> Place:
        return _OUTSIDE if component.node is None else self.places.get(component.node, _OUTSIDE)

    def _environment(self, component: Component) -> Mapping[str, str]:
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        return {**inherited, "PATH": self.search, **component.env, MARK: str(self.state)}

    def _digest(self, component: Component) -> str:
        spec = [self._argv(component), dict(component.env), self._place(component).token]
        if component.config:
            spec.append(component.config)
        return hashlib.sha256(json.dumps(spec).encode()).hexdigest()

    def _path(self, name: str) -> Path:
        return self.pids / f"{name}.json"

    def _write(self, name: str, record: Record) -> None:
        write_private(self._path(name), json.dumps(asdict(record)))

    def _record(self, name: str) -> Record | None:
        path = self._path(name)
        if not path.exists():
            return None
        try:
            data = json.loads(path.read_text())
            return Record(ProcessId(**data["process"]), data["digest"])
        except (ValueError, TypeError, KeyError):
            return None  # invalid or not written by this package: the process is found by its mark


def end_processes(processes: Iterable[ProcessId], term_seconds: float = TERM_SECONDS) -> None:
    """End exactly these processes: SIGTERM, then SIGKILL after a deadline.

    Args:
        processes: processes to end.
        term_seconds: seconds between SIGTERM and SIGKILL; 0 sends only SIGKILL.

    Raises:
        StuckProcessError: a process still exists long after SIGKILL.
    """
    remaining = list(processes)
    for number, seconds in ((signal.SIGTERM, term_seconds), (signal.SIGKILL, KILL_SECONDS)):
        if seconds == 0:
            continue
        for process in remaining:
            _signal(process, number)
        wait_until(partial(_all_ended, remaining), seconds)
        remaining = [process for process in remaining if _is_running(process)]
    if remaining:
        raise StuckProcessError([process.pid for process in remaining])


def end_all(find: Callable[[], Iterable[ProcessId]], term_seconds: float = TERM_SECONDS) -> None:
    """End all processes that a search finds, and those that they start meanwhile: search again until it finds none.

    Args:
        find: returns the processes to end.
        term_seconds: seconds between SIGTERM and SIGKILL; 0 sends only SIGKILL.

    Raises:
        StuckProcessError: a process still exists long after SIGKILL, or new processes start again and again.
    """
    for _ in range(_SEARCHES):
        found = list(find())
        if not found:
            return
        end_processes(found, term_seconds)
    if remaining := list(find()):
        raise StuckProcessError([process.pid for process in remaining])


def _all_ended(processes: Sequence[ProcessId]) -> bool:
    return not any(_is_running(process) for process in processes)


def _signal(process: ProcessId, number: signal.Signals) -> None:
    if is_alive(process):
        with suppress(ProcessLookupError):  # it ended in the meantime
            os.kill(process.pid, number)


def _is_running(process: ProcessId) -> bool:
    with suppress(ChildProcessError):  # not a child of this process, so another process reaps it
        os.waitpid(process.pid, os.WNOHANG)
    return is_alive(process)
