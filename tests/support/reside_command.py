"""The `reside` command for a cluster whose parts listen on loopback, without Kubernetes.

`python -m support.reside_command ARGUMENT…` is the command, except that it finds Jazz and Alpha at the addresses in the
environment. `Operator` starts it as a process, reads what it prints, and interrupts it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from reside.cli import config, session
from reside.cli.secret_store import FileStore
from reside.cli.vault import Vault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from support.alpha_cluster import AlphaCluster, Client

    from reside.jazz import Credentials

_ROOT = Path(__file__).parents[2]
_JAZZ, _ALPHA, _OTHERS = "TEST_JAZZ_URL", "TEST_ALPHA_URL", "TEST_REPLICA_URLS"
_WITHIN_S = 120.0


@dataclass
class Command:
    """A running command and its output so far.

    Attributes:
        process: the process.
        output: standard output and standard error, in the order in which they were printed.
    """

    process: asyncio.subprocess.Process
    output: str = ""

    async def until(self, text: str) -> str:
        """Wait until the output contains a text, and return the output."""
        assert self.process.stdout is not None
        try:
            async with asyncio.timeout(_WITHIN_S):
                while text not in self.output:
                    read = await self.process.stdout.read(4096)
                    assert read, f"the command ended without {text!r}: {self.output}"
                    self.output += read.decode()
        except TimeoutError:
            raise AssertionError(f"no {text!r} within {_WITHIN_S:g} s: {self.output}") from None
        return self.output

    async def end(self, code: int | None = 0) -> str:
        """Wait until the command ends with this code, if one is given, and return all that it printed, on one line."""
        assert self.process.stdout is not None
        async with asyncio.timeout(_WITHIN_S):
            self.output += (await self.process.stdout.read()).decode()
            await self.process.wait()
        said = " ".join(self.output.split())
        assert "Traceback" not in said, self.output
        assert code in (None, self.process.returncode), f"exit code {self.process.returncode}: {self.output}"
        return said

    async def answer(self, line: str) -> None:
        """Enter a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        await self.process.stdin.drain()

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)


@dataclass(frozen=True)
class Operator:
    """A person's configuration for one cluster.

    Attributes:
        folder: folder of the configuration.
        credentials: the account.
        jazz: address of Jazz.
        alpha: address of Alpha.
        alpha_account: account of Alpha.
        others: name → address of further replicas.
    """

    folder: Path
    credentials: Credentials = field(repr=False)
    jazz: str
    alpha: str
    alpha_account: str
    others: Mapping[str, str] = field(default_factory=dict)

    def configure(self) -> None:
        """Write the configuration."""
        self.folder.mkdir(exist_ok=True)
        secret = Vault(FileStore(self.folder)).encrypt(self.credentials.agent_secret)
        account = {"name": "me", "accountId": self.credentials.account_id, "encryptedAgentSecret": secret}
        cluster = {"name": "here", "namespace": "reside", "access": "direct", "alphaReplicaId": self.alpha_account}
        content = {
            "currentContext": "here",
            "contexts": [{"name": "here", "cluster": "here", "account": "me"}],
            "clusters": [cluster],
            "accounts": [account],
        }
        config.Config.model_validate(content)
        path = self.folder / "config.yaml"
        path.write_text(yaml.safe_dump(content))
        path.chmod(0o600)

    @asynccontextmanager
    async def running(self, *arguments: str, alpha: str | None = None) -> AsyncIterator[Command]:
        """Run a command, which is killed at the end of the block if it still runs.

        Args:
            arguments: the words after `reside`.
            alpha: another address of Alpha.
        """
        environment = {
            **os.environ,
            "PYTHONPATH": f"{_ROOT}:{_ROOT / 'tests'}",
            "RESIDE_CONFIG": str(self.folder),
            _JAZZ: self.jazz,
            _ALPHA: alpha or self.alpha,
            _OTHERS: json.dumps(dict(self.others)),
        }
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "support.reside_command", *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment,
        )
        try:
            yield Command(process)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def reside(self, *arguments: str, code: int | None = 0) -> str:
        """Run a command to its end, and return what it printed, on one line."""
        async with self.running(*arguments) as command:
            return await command.end(code)


def operator_of(cluster: AlphaCluster, client: Client, folder: Path) -> Operator:
    """Return the operator of a client's account, with a configuration in the folder."""
    made = Operator(folder, client.credentials, cluster.servers.jazz.url, cluster.endpoint, cluster.alpha.account)
    made.configure()
    return made


def _main() -> int:
    @asynccontextmanager
    async def jazz_of(_cluster: config.Cluster) -> AsyncIterator[str]:
        yield os.environ[_JAZZ]

    @asynccontextmanager
    async def replica_of(_cluster: config.Cluster, name: str) -> AsyncIterator[str]:
        yield json.loads(os.environ[_OTHERS]).get(name, os.environ[_ALPHA])

    session.jazz_of, session.replica_of = jazz_of, replica_of
    from reside.cli import main  # noqa: PLC0415 - only the command needs it

    return main.run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(_main())
