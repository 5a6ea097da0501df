"""A complete ReSide on its own embedded Kubernetes, as `make up` creates it, used from outside.

Tests use only what an operator has: the `reside` command, the Kubernetes API, and the registry. State, configuration
and image addresses are in a folder of the test run, so no user's cluster or configuration is changed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from base64 import b64decode
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from support.live_objects import live_object, live_objects
from support.operator_session import replica_rows

from reside.local import LocalCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from reside.local import ClusterInfo

ROOT = Path(__file__).parents[2]
REGISTRY = "registry.reside.internal/reside/examples"


@dataclass
class Events:
    """The events of a watch, complete after it has ended."""

    seen: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def read(self, text: str) -> None:
        """Parse the watch's output, a sequence of JSON documents."""
        decoder, at = json.JSONDecoder(), 0
        while text[at:].strip():
            at += len(text[at:]) - len(text[at:].lstrip())
            event, at = decoder.raw_decode(text, at)
            self.seen.append((event["type"], event["object"]))

    def summary(self) -> str:
        """Return one line for each event: type, name, deletion timestamp, phase."""
        return "\n".join(
            f"{kind} {thing['metadata']['name']} {thing['metadata'].get('deletionTimestamp', 'stays')} "
            f"{thing.get('status', {}).get('phase')}"
            for kind, thing in self.seen
        )

    def most_at_once(self) -> int:
        """Return the largest number of objects that existed at the same time, without pods that have ended.

        A pod whose containers have ended is listed until its kubelet confirms the end.
        """
        present: set[str] = set()
        most = 0
        for kind, thing in self.seen:
            over = kind == "DELETED" or thing.get("status", {}).get("phase") in ("Succeeded", "Failed")
            (present.discard if over else present.add)(thing["metadata"]["uid"])
            most = max(most, len(present))
        return most


@dataclass(frozen=True)
class Platform:
    """One ReSide cluster (namespace) and the operator's configuration for it."""

    name: str
    """Name of the local cluster."""
    local_state: Path
    """Folder of the state of local clusters."""
    folder: Path
    """Folder of the operator's configuration and state."""
    namespace: str = "reside"
    up_output: str = ""
    """Output of the command that created the cluster."""

    @staticmethod
    def outside() -> dict[str, str]:
        """Return the environment of this process, without variables that select a user's cluster."""
        kept = ("RESIDE_CACHE", "RESIDE_TOOLS")
        return {
            key: value
            for key, value in os.environ.items()
            if key in kept or (key != "KUBECONFIG" and not key.startswith("RESIDE_"))
        }

    @property
    def environment(self) -> dict[str, str]:
        """Environment of the operator's commands."""
        return {
            **self.outside(),
            "RESIDE_CONFIG": str(self.folder / "config"),
            "RESIDE_STATE": str(self.folder / "state"),
            "RESIDE_LOCAL_STATE": str(self.local_state),
            "RESIDE_LOCAL_CLUSTER": self.name,
        }

    @property
    def info(self) -> ClusterInfo:
        """Addresses of the local cluster."""
        return LocalCluster(self.name, self.local_state / self.name).info()

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.info.kubeconfig

    def run(self, *command: str, check: bool = True, seconds: float = 300) -> subprocess.CompletedProcess[str]:
        """Run a command as the operator; unless `check` is false, it must succeed."""
        environment = {**self.environment, "KUBECONFIG": str(self.kubeconfig)}
        result = subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False
        )
        if check:
            assert result.returncode == 0, f"{' '.join(command)}\n{result.stdout}\n{result.stderr}"
        return result

    @property
    def command(self) -> tuple[str, ...]:
        """The `reside` command of this environment."""
        return (str(Path(sys.executable).with_name("reside")),)

    def as_other_operator(self, name: str = "stranger") -> Platform:
        """Return the same cluster, used by another operator whose account has this name and no grants."""
        other = replace(self, folder=self.folder / name)
        shutil.copytree(self.folder / "config", other.folder / "config", dirs_exist_ok=True)
        if name not in other.accounts():
            other.reside("account", "create", name)
        path = other.folder / "config" / "config.yaml"
        config = yaml.safe_load(path.read_text())
        for context in config["contexts"]:
            context["account"] = name
        path.write_text(yaml.safe_dump(config))
        return other

    def accounts(self) -> dict[str, str]:
        """Return the ids of the operator's accounts by name."""
        rows = json.loads(self.reside("account", "list", "--output", "json").stdout)
        return {row["name"]: row["accountId"] for row in rows}

    def reside(self, *args: str, check: bool = True, seconds: float = 300) -> subprocess.CompletedProcess[str]:
        """Run the `reside` command."""
        return self.run(*self.command, *args, check=check, seconds=seconds)

    def kubectl(self, *args: str, check: bool = True) -> str:
        """Run kubectl in the cluster's namespace, and return its output."""
        return self.run("kubectl", "--namespace", self.namespace, *args, check=check).stdout

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """Return the live object; an empty dict if it does not exist."""
        return live_object(self.info, self.namespace, kind, name) or {}

    def objects(self, kind: str, labels: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """Return the live objects of a kind that have these labels."""
        return live_objects(self.info, self.namespace, kind, labels)

    def secret(self, name: str) -> dict[str, str]:
        """Return the decoded values of a Secret."""
        return {key: b64decode(value).decode() for key, value in self.get("Secret", name)["data"].items()}

    def volumes(self) -> list[Path]:
        """Return the folders of the namespace's volumes on this machine."""
        volumes = [v for v in self.objects("PersistentVolume") if v["spec"]["claimRef"]["namespace"] == self.namespace]
        return [Path((v["spec"].get("hostPath") or v["spec"]["local"])["path"]) for v in volumes]

    def jazz_database(self) -> Path:
        """Return the database of the sync server."""
        (found,) = [file for volume in self.volumes() for file in volume.rglob("jazz.db")]
        return found

    def replicas(self) -> dict[str, dict[str, Any]]:
        """Return the rows of `reside replica list`, by name."""
        return {row["name"]: row for row in replica_rows(self.environment)}

    def build(self, folder: Path | str, tag: str) -> str:
        """Build and push an example, and return the image reference by tag."""
        source = ROOT / folder
        manifest = json.loads(self.reside("build", str(source), "--tag", tag, "--push", "--output", "json").stdout)
        return f"{manifest['identity']}:{tag}"

    def load(self, image: str, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Load an image with automatic approval, and wait until its version runs."""
        return self.reside("replica", "load", image, "--auto-approve", *args, check=check)

    def load_and_disturb(self, image: str, name: str, disturb: Callable[[], object]) -> str:
        """Load an image under a name, call `disturb` once the load request exists, and return the load's output."""
        loading = subprocess.Popen(
            [*self.command, "replica", "load", image, "--name", name, "--auto-approve"],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        with loading:
            assert loading.stdout is not None
            said = ""
            for line in loading.stdout:
                said += line
                if "request" in line:
                    break
            disturb()
            return said + loading.stdout.read()

    @contextmanager
    def watching(self, *args: str) -> Iterator[Events]:
        """Run `kubectl get … --watch` while the block is open, and collect its events."""
        command = [
            "kubectl",
            "--namespace",
            self.namespace,
            "get",
            *args,
            "--watch",
            "--output-watch-events",
            "-o",
            "json",
        ]
        environment = {**self.environment, "KUBECONFIG": str(self.kubeconfig)}
        with (
            tempfile.TemporaryFile("w+") as out,
            subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT) as watch,
        ):
            events = Events()
            try:
                yield events
            finally:
                watch.terminate()
                watch.wait(60)
                out.seek(0)
                events.read(out.read())

    def objects_of(self, replica: str, kind: str) -> list[dict[str, Any]]:
        """Return the live objects of a kind that belong to a replica, including those that are being deleted."""
        return self.objects(kind, {"reside.io/replica": replica})

    def ready_pods(self, replica: str) -> list[dict[str, Any]]:
        """Return the pods of a replica that are Ready and not being deleted."""
        return [pod for pod in self.objects_of(replica, "Pod") if _ready(pod)]


def _ready(pod: dict[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return "deletionTimestamp" not in pod["metadata"] and any(
        c["type"] == "Ready" and c["status"] == "True" for c in conditions
    )
