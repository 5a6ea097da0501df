"""The root as an ordinary Pulumi program: preview, up, up again, destroy, in a shell prepared as the README says."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from e2e.bootstraps import PHASES, beside, check_up, claim, contents
from e2e.images import touched
from support.eventually import eventually_sync
from support.platform import ROOT

from reside.registry import ImageReference, RegistryClient

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from support.platform import Platform

pytestmark = pytest.mark.timeout(600)
NAME = "rooted"
"""The passphrases of the namespace and of the stack."""


@dataclass(frozen=True)
class Shell:
    """A shell at the root after `eval "$(reside cluster env)"`, whose temporary files are in `scratch`."""

    cluster: Platform
    scratch: Path

    def pulumi(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `pulumi`, which must succeed, use installed plugins without a warning, and leave no temporary file."""
        command = shlex.join(["pulumi", *arguments, "--non-interactive"])
        script = f'export TMPDIR={self.scratch}; eval "$({self.cluster.command[0]} cluster env)"; {command}'
        done = self.cluster.run("bash", "-c", script, seconds=400)
        assert "from $PATH" not in done.stdout + done.stderr
        assert list(self.scratch.iterdir()) == []
        return done

    def changes(self, operation: str, *options: str) -> dict[str, int]:
        """Run an operation on the stack; return how many resources it changed, by kind of change."""
        done = self.pulumi(operation, *options, "--yes", "--skip-preview", "--json", "--stack", NAME)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        found: dict[str, int] = next(e["summaryEvent"]["resourceChanges"] for e in events if "summaryEvent" in e)
        return found


@pytest.fixture(scope="module")
def shell(kubernetes: Platform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    cluster = beside(kubernetes, NAME)
    shell = Shell(cluster, tmp_path_factory.mktemp("scratch"))
    settings = {
        "namespace": NAME,
        "localCluster": cluster.name,
        "imagesFile": str(cluster.folder / "state/images.json"),
        "storageClass": "standard",
    }
    try:
        shell.pulumi("stack", "init", NAME, "--no-select")
        for key, value in settings.items():
            shell.pulumi("config", "set", key, value, "--stack", NAME)
        yield shell
    finally:
        (ROOT / f"stacks/Pulumi.{NAME}.yaml").unlink(missing_ok=True)  # not tracked


@pytest.fixture(scope="module")
def previewed(shell: Shell) -> dict[str, Any]:
    """Return the preview of a cluster that does not exist yet."""
    shown: dict[str, Any] = json.loads(shell.pulumi("preview", "--json", "--stack", NAME).stdout)
    assert not shell.cluster.get("Namespace", NAME)
    return shown


@pytest.fixture(scope="module")
def created(shell: Shell, previewed: dict[str, Any]) -> int:
    """Run the first `pulumi up`, and return how many resources it created."""
    changes = shell.changes("up")
    assert set(changes) == {"create"}
    return changes["create"]


def test_a_preview_before_the_first_up_shows_all_phases_with_their_steps(previewed: dict[str, Any]) -> None:
    urns = [step["urn"] for step in previewed["steps"]]
    for phase in PHASES:
        assert any(urn.endswith(f"reside:bootstrap:{phase}::{phase.lower()}") for urn in urns), phase
        assert any(f"reside:bootstrap:{phase}$" in urn for urn in urns), f"{phase} has no step"
    assert set(previewed["changeSummary"]) == {"create"}


def test_up_creates_a_cluster_and_a_second_up_changes_nothing(shell: Shell, created: int) -> None:
    claim(shell.cluster)
    check_up(shell.cluster)
    eventually_sync("the last change", lambda: contents(shell.cluster) == contents(shell.cluster), within=180)
    before = contents(shell.cluster)
    assert shell.changes("up", "--expect-no-changes") == {"same": created}
    assert contents(shell.cluster) == before


def test_another_domain_reaches_a_running_cluster(shell: Shell, created: int) -> None:
    """fdfab45: `pulumi up` said done, and nothing changed."""
    cluster = shell.cluster
    pods = uids(cluster)
    for key, value in {"domain": "reside.example.org", "clusterIssuer": "ca"}.items():
        shell.pulumi("config", "set", key, value, "--stack", NAME)
    assert shell.changes("up")["same"] < created

    def hosts() -> list[str]:
        ingresses = [cluster.get("Ingress", name) for name in ("alpha", "jazz")]
        return [rule["host"] for ingress in ingresses if ingress for rule in ingress["spec"]["rules"]]

    eventually_sync("the ingresses", hosts, lambda found: found == ["reside.example.org"] * 2, within=180)
    assert uids(cluster) == pods
    note = cluster.replicas()["alpha"]["note"]
    assert note == "outdated pod template: `reside replica refresh alpha`", "the pod has the domain of its start"


def test_new_images_are_loaded_into_a_running_cluster(shell: Shell, created: int) -> None:
    cluster = shell.cluster
    pods = uids(cluster)
    known = cluster.folder / "state/images.json"
    images = json.loads(known.read_text())
    reference = ImageReference.parse(touched(cluster, images["alpha"]))
    client = RegistryClient({reference.registry: f"http://{cluster.info.registry_loopback}"})
    images["alpha"] = f"{reference.identity}@{anyio.run(client.resolve, reference)}"
    known.write_text(json.dumps(images))
    assert shell.changes("up")["same"] < created
    rows = cluster.replicas()
    assert (rows["alpha"]["version"], rows["alpha"]["status"]) == (2, "running")
    assert rows["alpha"]["image"] == images["alpha"]
    assert rows["alpha"]["note"] is None, "a new version has the new pod template"
    assert rows["kubernetes-sentinel"]["version"] == 1
    eventually_sync("the end of the first Alpha", lambda: len(uids(cluster)) == len(pods), within=240)
    assert len(uids(cluster) - pods) == 1, "only Alpha was restarted"
    assert shell.changes("up", "--expect-no-changes") == {"same": created}


def uids(cluster: Platform) -> set[str]:
    """Return the UIDs of all pods."""
    return {pod["metadata"]["uid"] for pod in cluster.objects("Pod")}


def test_destroy_leaves_only_the_objects_of_a_fresh_namespace(shell: Shell, created: int, kubernetes: Platform) -> None:
    cluster, fresh = shell.cluster, beside(kubernetes, "fresh")
    kubernetes.kubectl("create", "namespace", fresh.namespace)
    assert "StatefulSet/jazz" in contents(cluster)
    assert shell.changes("destroy") == {"delete": created}
    eventually_sync(
        "nothing of the cluster",
        lambda: set(contents(cluster)) ^ set(contents(fresh)),
        lambda left: not left,
        within=180,
    )
    eventually_sync("no volume of the cluster", lambda: _volumes(kubernetes, NAME), lambda left: not left, within=180)
    kubernetes.run("kubectl", "delete", "namespace", NAME, fresh.namespace, "--wait=false")


def _volumes(kubernetes: Platform, namespace: str) -> list[str]:
    """Return the names of the volumes that are bound to claims of this namespace."""
    volumes = kubernetes.objects("PersistentVolume")
    return [v["metadata"]["name"] for v in volumes if v["spec"]["claimRef"]["namespace"] == namespace]
