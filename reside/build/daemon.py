"""A Docker daemon to build images with: the user's if there is one, otherwise one of our own for the moment.

Ours keeps its images in the cache folder, so that a second build finds its layers, and touches nothing else of the
machine: no bridge, no iptables rule, no forwarding. It has no network for containers either, so images are made of
``FROM``, ``COPY`` and metadata only; what they hold is put together outside. That also works where root lacks the
capabilities that a running container needs.

Invariants: one process at a time uses our daemon (a file lock); it is stopped by its process id when the block ends,
and by the kernel when the thread that started it dies. What is left of an earlier one nevertheless is found by the mark
in its environment and stopped before a new one starts.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import docker
import docker.errors

from reside.local.errors import LocalError, ToolMissingError, UsageError
from reside.local.layout import RUNTIME_ROOT
from reside.local.processes import MARK, is_alive, marked
from reside.local.toolchain import default_search
from reside.local.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

PACKAGES = {"containerd": "containerd", "dockerd": "docker.io", "setpriv": "util-linux"}  # Debian's
DEFAULT_SOCKET = Path("/var/run/docker.sock")
START_DEADLINE = 60.0  # seconds; 2 are usual
STOP_DEADLINE = 30.0  # seconds until a daemon that does not end is killed
LOCK_DEADLINE = 1200.0  # seconds to wait for another build on this machine; a cold one takes minutes
CALL_TIMEOUT = 600  # seconds without an answer of the daemon; the push of a large layer is silent for long


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where ReSide keeps what can be made again: ``RESIDE_CACHE``, else ``reside`` in the user's cache folder."""
    if explicit := environ.get("RESIDE_CACHE"):
        return Path(explicit).absolute()
    home = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or Path.home()) / ".cache"
    return Path(home).absolute() / "reside"


@contextmanager
def private_dockerd(progress: Callable[[str], None] = lambda _line: None) -> Iterator[docker.DockerClient]:
    """A client of a daemon that runs as long as the block; of the user's own daemon where there is one.

    Args:
        progress: Called with one line when there is something to wait for.

    Raises:
        UsageError: There is no daemon and we may not start one, or ``DOCKER_HOST`` does not answer.
        LocalError: Our daemon did not start; the message has the end of its log.
    """
    client = _users_daemon()
    if client is None:
        if os.geteuid() != 0:
            raise UsageError("no Docker daemon answers: start one, name it in DOCKER_HOST, or run this as root")
        with _own_daemon(cache_folder() / "docker", progress) as socket:
            client = docker.DockerClient(base_url=f"unix://{socket}", timeout=CALL_TIMEOUT)
            try:
                yield client
            finally:
                client.close()
        return
    try:
        yield client
    finally:
        client.close()


def _users_daemon() -> docker.DockerClient | None:
    """The daemon named in the environment, or the one on the usual socket if it answers."""
    host = os.environ.get("DOCKER_HOST")
    if host is None and not DEFAULT_SOCKET.exists():
        return None
    try:
        client = docker.from_env(timeout=CALL_TIMEOUT)
        client.ping()
    except docker.errors.DockerException as error:
        if host is None:
            return None  # a socket that nobody listens on
        raise UsageError(f"no Docker daemon answers at DOCKER_HOST={host}: start it, or unset DOCKER_HOST") from error
    return client


@contextmanager
def _own_daemon(folder: Path, progress: Callable[[str], None]) -> Iterator[Path]:
    """Run containerd and dockerd on this folder; yields the daemon's socket."""
    tools = {name: _find(name, package) for name, package in PACKAGES.items()}
    folder.mkdir(parents=True, exist_ok=True)
    # A socket's path has at most 107 bytes, which a cache folder may exceed.
    runtime = RUNTIME_ROOT / f"docker-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}"
    with _locked(folder / "lock", progress), ExitStack() as stack:
        _stop_leftovers(folder)
        shutil.rmtree(runtime, ignore_errors=True)
        runtime.mkdir(parents=True, mode=0o700)
        stack.callback(shutil.rmtree, runtime, ignore_errors=True)
        log = stack.enter_context((folder / "dockerd.log").open("wb"))
        environment = os.environ | {MARK: str(folder)}
        for name, arguments, socket in _commands(folder, runtime):
            process = subprocess.Popen(
                [tools["setpriv"], "--pdeathsig", "TERM", tools[name], *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,  # Ctrl-C is for us; we end the daemons in their order
            )
            stack.callback(_stop, process)
            _await_socket(name, process, socket, Path(log.name))
        yield runtime / "docker.sock"


def _find(tool: str, package: str) -> str:
    found = shutil.which(tool, path=default_search())
    if found is None:
        raise ToolMissingError(
            tool, f"run `apt-get install {package}` as root, or name a Docker daemon in DOCKER_HOST."
        )
    return found


def _await_socket(name: str, process: subprocess.Popen[bytes], socket: Path, log: Path) -> None:
    if not wait_until(lambda: socket.exists() or process.poll() is not None, START_DEADLINE):
        raise LocalError(f"{name} made no socket within {START_DEADLINE:.0f} s; see {log}")
    if process.poll() is not None:
        tail = log.read_text(errors="replace")[-2000:]
        raise LocalError(f"{name} ended with {process.returncode} at its start; its log {log} ends with:\n{tail}")


def _commands(folder: Path, runtime: Path) -> tuple[tuple[str, list[str], Path], ...]:
    """Name, arguments and socket of both daemons, in the order of their start."""
    containerd = runtime / "containerd.sock"
    config = runtime / "containerd.toml"
    config.write_text(
        f'version = 2\nroot = "{folder / "containerd"}"\nstate = "{runtime / "containerd"}"\n'
        'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n'
        f'[grpc]\n  address = "{containerd}"\n'
    )
    docker_socket = runtime / "docker.sock"
    flags = [
        f"--host=unix://{docker_socket}",
        f"--data-root={folder / 'data'}",
        f"--exec-root={runtime / 'exec'}",
        f"--pidfile={runtime / 'docker.pid'}",
        f"--containerd={containerd}",
        f"--config-file={runtime / 'no-daemon.json'}",  # the machine's own settings are for its own daemon
        "--bridge=none",
        "--iptables=false",
        "--ip6tables=false",
        "--ip-forward=false",
        "--ip-masq=false",
        "--userland-proxy=false",
        "--insecure-registry=127.0.0.0/8",
    ]
    (runtime / "no-daemon.json").write_text("{}")
    return (("containerd", [f"--config={config}"], containerd), ("dockerd", flags, docker_socket))


@contextmanager
def _locked(path: Path, progress: Callable[[str], None]) -> Iterator[None]:
    """Hold an exclusive lock on a file, which the kernel releases even if we are killed."""
    with path.open("wb") as file:
        if not _try_lock(file.fileno()):
            progress("another build uses the image cache: waiting for it")
            if not wait_until(lambda: _try_lock(file.fileno()), LOCK_DEADLINE):
                raise UsageError(f"{path} is held by another build since {LOCK_DEADLINE:.0f} s: end that one first")
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a daemon that we started: politely, then not."""
    process.terminate()
    try:
        process.wait(timeout=STOP_DEADLINE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=STOP_DEADLINE)


def _stop_leftovers(folder: Path) -> None:
    """End what a killed process left; since we hold the lock, nobody uses it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in marked(folder):
            if is_alive(process):
                os.kill(process.pid, number)
        if wait_until(lambda: not any(marked(folder)), STOP_DEADLINE):
            return
    raise LocalError(f"processes of an earlier build still use {folder}: end them, then try again")
