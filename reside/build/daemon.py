"""A Docker daemon for builds: the user's daemon if one responds, otherwise a private one for the duration of a block.

The private daemon keeps its images in the cache folder, so that a second build reuses its layers. It changes nothing
else on the machine: no bridge, no iptables rules, no forwarding. Containers have no network, so images consist of
`FROM`, `COPY` and metadata only, and their contents are collected outside. This also works where root lacks the
capabilities to run containers.

Invariants: one process at a time uses the private daemon (a file lock); it is stopped by its pid when the block ends,
and by the kernel when the thread that started it dies. A daemon that survives nevertheless is identified by a marker in
its environment and stopped before a new one starts.
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

from reside.build.cache import cache_folder
from reside.common.polling import wait_until
from reside.common.processes import is_alive
from reside.local.errors import LocalError, ToolMissingError, UsageError
from reside.local.layout import RUNTIME_ROOT
from reside.local.processes import MARK, marked
from reside.local.toolchain import default_search

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PACKAGES = {"containerd": "containerd", "dockerd": "docker.io", "setpriv": "util-linux"}  # Debian's
DEFAULT_SOCKET = Path("/var/run/docker.sock")
START_DEADLINE = 60.0  # seconds; it usually takes 2
STOP_DEADLINE = 30.0  # seconds until a daemon that does not end is killed
LOCK_DEADLINE = 1200.0  # seconds to wait for another build on this machine; without a cache it takes minutes
CALL_TIMEOUT = 600  # seconds without an answer of the daemon; the push of a large layer is silent for long


@contextmanager
def private_dockerd(progress: Callable[[str], None] = lambda _line: None) -> Iterator[docker.DockerClient]:
    """Yield a client of the user's daemon, or of a private one that runs as long as the block.

    Args:
        progress: called with one line when the build has to wait.

    Raises:
        UsageError: no daemon responds and this user may not start one, or `DOCKER_HOST` does not respond.
        LocalError: the private daemon did not start; the message contains the end of its log.
    """
    client = _users_daemon()
    if client is None:
        if os.geteuid() != 0:
            raise UsageError("no Docker daemon responds: start one, set DOCKER_HOST, or run this as root")
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
    """Return a client of the daemon in `DOCKER_HOST`, else of the default socket if a daemon responds there."""
    host = os.environ.get("DOCKER_HOST")
    if host is None and not DEFAULT_SOCKET.exists():
        return None
    try:
        client = docker.from_env(timeout=CALL_TIMEOUT)
        client.ping()
    except docker.errors.DockerException as error:
        if host is None:
            return None  # nothing listens on the socket
        raise UsageError(f"no Docker daemon responds at DOCKER_HOST={host}: start it, or unset DOCKER_HOST") from error
    return client


@contextmanager
def _own_daemon(folder: Path, progress: Callable[[str], None]) -> Iterator[Path]:
    """Run containerd and dockerd on this folder; yield the daemon's socket."""
    tools = {name: _find(name, package) for name, package in PACKAGES.items()}
    folder.mkdir(parents=True, exist_ok=True)
    # The path of a socket is limited to 107 bytes, which a path in the cache folder may exceed.
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
                start_new_session=True,  # so that Ctrl-C does not reach the daemons, which are stopped in order
            )
            stack.callback(_stop, process)
            _await_socket(name, process, socket, Path(log.name))
        yield runtime / "docker.sock"


def _find(tool: str, package: str) -> str:
    found = shutil.which(tool, path=default_search())
    if found is None:
        raise ToolMissingError(tool, f"run `apt-get install {package}` as root, or set DOCKER_HOST to a Docker daemon.")
    return found


def _await_socket(name: str, process: subprocess.Popen[bytes], socket: Path, log: Path) -> None:
    if not wait_until(lambda: socket.exists() or process.poll() is not None, START_DEADLINE):
        raise LocalError(f"{name} created no socket within {START_DEADLINE:.0f} s; see {log}")
    if process.poll() is not None:
        tail = log.read_text(errors="replace")[-2000:]
        raise LocalError(f"{name} exited with {process.returncode} during startup; its log {log} ends with:\n{tail}")


def _commands(folder: Path, runtime: Path) -> tuple[tuple[str, list[str], Path], ...]:
    """Return name, arguments and socket of both daemons, in start order."""
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
        f"--config-file={runtime / 'no-daemon.json'}",  # ignores the machine's daemon.json
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
    """Hold an exclusive file lock, which the kernel releases if this process is killed."""
    with path.open("wb") as file:
        if not _try_lock(file.fileno()):
            progress("waiting for another build that uses the image cache")
            if not wait_until(lambda: _try_lock(file.fileno()), LOCK_DEADLINE):
                raise UsageError(f"another build has held {path} for {LOCK_DEADLINE:.0f} s: stop it, then try again")
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a daemon that this process started: SIGTERM, then SIGKILL."""
    process.terminate()
    try:
        process.wait(timeout=STOP_DEADLINE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=STOP_DEADLINE)


def _stop_leftovers(folder: Path) -> None:
    """Stop the daemons of a killed build. The lock is held, so no other build uses them."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in marked(folder):
            if is_alive(process):
                os.kill(process.pid, number)
        if wait_until(lambda: not any(marked(folder)), STOP_DEADLINE):
            return
    raise LocalError(f"processes of an earlier build still use {folder}: stop them, then try again")
