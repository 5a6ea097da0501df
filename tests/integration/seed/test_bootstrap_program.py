"""The bootstrap program on the real engine and a real control plane: its preview, its refusals, its repair."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from support.eventually import eventually_sync

from reside.cli import project, vault
from reside.cli.project import backend_url, reason
from reside.seed import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reside.local import ClusterInfo

pytestmark = pytest.mark.timeout(300)
ROOT = Path(__file__).parents[3]
PHASES = ("Storage", "Accounts", "Launch", "Load", "Handover")
PROVIDERS = ("pulumi-resource-kubernetes", "pulumi.dynamic")
STORAGE_CLASS = "program"
DIGEST = "sha256:" + "e" * 64


class Program:
    """The root project with its own state and settings; nothing in the checkout is written."""

    def __init__(self, folder: Path, scratch: str, cluster: ClusterInfo) -> None:
        self.state = folder / "state"
        self.state.mkdir(parents=True)
        self.project = folder / "project"
        self.project.mkdir()
        document = {
            "name": "reside",
            "runtime": {"name": "python", "options": {"virtualenv": str(Path(sys.prefix))}},
            "main": str(ROOT),
        }
        (self.project / "Pulumi.yaml").write_text(json.dumps(document))
        self.settings = settings.parse(
            {
                "namespace": "program",
                "kubeconfig": str(cluster.kubeconfig),
                "kube_context": cluster.context,
                "access": "direct",
                "deadline": 2,
                "storage_class": STORAGE_CLASS,
                "images": {
                    name: f"registry.reside.internal/reside/{name}@{DIGEST}"
                    for name in ("alpha", "kubernetes-sentinel", "seed", "jazz", "etcd")
                },
            },
            "test",
        )
        self.environment = {
            **os.environ,
            settings.SETTINGS_VARIABLE: self.settings.to_json(),
            "PULUMI_BACKEND_URL": backend_url(self.state),
            "PULUMI_CONFIG_PASSPHRASE": "test",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "TMPDIR": scratch,
        }
        self.pulumi("stack", "init", "test")

    def pulumi(self, *arguments: str, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the engine."""
        done = subprocess.run(
            ["pulumi", *arguments, "--non-interactive"],
            cwd=self.project,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def providers(self) -> set[str]:
        """Return the providers that run for this program, identified by their environment."""
        found = set()
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(FileNotFoundError, ProcessLookupError, PermissionError):  # ended, or of another user
                if str(self.state).encode() in (process / "environ").read_bytes():
                    command = (process / "cmdline").read_text()
                    found |= {name for name in PROVIDERS if name in command}
        return found


@pytest.fixture(scope="module")
def program(cluster: ClusterInfo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    storage = {"metadata": {"name": STORAGE_CLASS}, "provisioner": "example.test/none"}
    document = json.dumps({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", **storage})
    command = ["kubectl", "--kubeconfig", str(cluster.kubeconfig), "apply", "-f", "-"]
    subprocess.run(command, input=document, text=True, check=True)
    with TemporaryDirectory() as scratch:  # for kubeconfigs that the Kubernetes provider does not remove
        yield Program(tmp_path_factory.mktemp("program"), scratch, cluster)


def test_a_preview_before_the_first_up_shows_all_phases_with_their_steps(program: Program) -> None:
    shown = json.loads(program.pulumi("preview", "--json").stdout)
    urns = [step["urn"] for step in shown["steps"]]
    for phase in PHASES:
        assert any(urn.endswith(f"reside:bootstrap:{phase}::{phase.lower()}") for urn in urns), phase
    for kind, name in (("apps/v1:StatefulSet", "statefulset-jazz"), ("apps/v1:StatefulSet", "statefulset-etcd")):
        assert any(f"reside:bootstrap:Storage$kubernetes:{kind}::{name}" in urn for urn in urns), name
    for phase, step in zip(PHASES, ("ready", "identities", "launched", "loaded", "handed-over"), strict=True):
        assert any(urn.endswith(f"reside:bootstrap:{phase}$pulumi-python:dynamic:Resource::{step}") for urn in urns)


def test_the_policy_pack_accepts_the_program(program: Program) -> None:
    done = program.pulumi("preview", "--policy-pack", str(ROOT / "policy"), check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[mandatory]" not in done.stdout


def test_the_providers_end_with_a_killed_engine_whose_lock_is_cancelled(program: Program) -> None:
    command = ["pulumi", "up", "--yes", "--skip-preview", "--non-interactive"]
    with subprocess.Popen(
        command, cwd=program.project, env=program.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as engine:
        eventually_sync("the start of both providers", lambda: program.providers() == set(PROVIDERS), within=60)
        engine.kill()
    eventually_sync("the end of the providers", program.providers, lambda left: not left, within=60)
    refused = program.pulumi("up", "--yes", "--skip-preview", check=False)
    assert "pulumi cancel" in refused.stderr
    program.pulumi("cancel", "--yes")


def test_a_failed_phase_names_what_it_waited_for_and_the_command_continues_it(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a kubelet nothing gets ready: the first phase fails with its reason, and what it created remains."""
    done = program.pulumi("up", "--yes", "--skip-preview", check=False)
    assert done.returncode != 0
    assert "readiness of jazz was not reached in 2 s" in done.stdout + done.stderr
    state = program.pulumi("stack", "export").stdout
    assert "statefulset-jazz" in state
    monkeypatch.setenv("RESIDE_STATE", str(program.state))
    monkeypatch.setenv("RESIDE_CONFIG", str(tmp_path))
    monkeypatch.setattr(vault, "bootstrap_passphrase", lambda: "test")
    steps: list[tuple[str, str]] = []
    with pytest.raises(project.BootstrapFailedError) as failure:
        project.up(program.settings, "test", lambda step, event: steps.append((step, event)))
    assert re.fullmatch(r"readiness of jazz was not reached in 2 s: [^;]*", str(failure.value))
    assert ("Storage statefulset-jazz", "unchanged") in steps
    assert ("Storage ready", "started") in steps
    program.pulumi("destroy", "--yes", "--skip-preview")


def test_a_wrong_passphrase_is_named_with_the_cure(program: Program) -> None:
    done = program.pulumi("up", "--yes", "--skip-preview", check=False, PULUMI_CONFIG_PASSPHRASE="another")
    assert done.returncode != 0
    assert re.search(r"incorrect passphrase: restore the passphrase \(PULUMI_CONFIG_PASSPHRASE\)", reason(done.stderr))


def test_a_full_disk_is_named_with_the_cure(program: Program, tmp_path: Path) -> None:
    """The state is on a file system of its own, which has no space left."""
    full = 'mount -t tmpfs -o size=16k none "$0" && head -c 16k /dev/zero > "$0/file"; exec pulumi "$@"'
    command = ["unshare", "--mount", "sh", "-c", full, str(tmp_path), "stack", "init", "full", "--non-interactive"]
    environment = {**program.environment, "PULUMI_BACKEND_URL": backend_url(tmp_path)}
    done = subprocess.run(
        command, cwd=program.project, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode != 0
    assert re.search("no space left on device: free disk space, then run the command again", reason(done.stderr))
