"""A machine that has nothing of a cluster but its domain: no kubeconfig, no address of the Kubernetes API.

Its name service is an /etc/hosts of its own, and it trusts the authority of the domain's certificate and no other.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from support.platform import ROOT

if TYPE_CHECKING:
    from support.platform import Platform

_IN_ITS_OWN_HOSTS = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"')
"""Run a command that sees another /etc/hosts: `$0` is the file, the rest is the command."""


@dataclass(frozen=True)
class Outside:
    """The machine.

    Attributes:
        command: the `reside` command.
        hosts: its /etc/hosts.
        environment: the environment of its commands, without an authority.
        trust: the variables that name the authority.
    """

    command: tuple[str, ...]
    hosts: Path
    environment: dict[str, str] = field(repr=False)
    trust: dict[str, str]

    def reside(self, *arguments: str, typed: str = "", trusting: bool = True) -> subprocess.CompletedProcess[str]:
        """Run `reside`; `typed` is its standard input."""
        return self._run(*self.command, *arguments, typed=typed, trusting=trusting)

    def done(self, *arguments: str, typed: str = "") -> str:
        """Run `reside`, which must succeed, and return its output."""
        done = self.reside(*arguments, typed=typed)
        assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def shell(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a script, in which `reside` is the command."""
        folder = str(Path(self.command[0]).parent)
        return self._run("bash", "-ec", f"PATH={folder}:$PATH\n{script}", typed="", trusting=True)

    def program(self, module: str) -> subprocess.CompletedProcess[str]:
        """Run a Python module of the tests."""
        return self._run(sys.executable, "-m", module)

    def _run(self, *command: str, typed: str = "", trusting: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*_IN_ITS_OWN_HOSTS, str(self.hosts), *command],
            env=self.environment | (self.trust if trusting else {}),
            input=typed,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


def outside(cluster: Platform, domain: str) -> Outside:
    """Return such a machine, on which nobody has used `reside` yet."""
    folder = cluster.folder / "outside"
    home = folder / "home"
    home.mkdir(parents=True)
    hosts = folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost\n{cluster.info.ingress_address} {domain}\n")
    environment = cluster.outside() | {
        "HOME": str(home),
        "KUBECONFIG": str(folder / "none"),
        "RESIDE_CONFIG": str(folder / "config"),
        "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}",
    }
    trust = {"SSL_CERT_FILE": str(cluster.info.ingress_authority), "SSL_CERT_DIR": str(home)}
    return Outside(cluster.command, hosts, environment, trust)
