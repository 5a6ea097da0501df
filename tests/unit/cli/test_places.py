"""Each command that has an option for the cluster, or for its place, uses the one that is named."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import anyio
import pytest
from pydantic import SecretStr
from support.command_mistakes import check_mistake

from reside.cli import main
from reside.cli.new import Kind, make, parse_names
from reside.seed.backups import sealing
from reside.seed.backups.archive import JAZZ, OBJECTS, ArchiveWriter, Manifest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

PASSPHRASE = "correct horse battery"

CONTEXTS = (
    "cluster prune --auto-approve --context west",
    "dev {folder}/hello --approve --context west",
    "permission approve ada greeter greet --context west",
    "permission clear ada --context west",
    "permission explain ada greeter greet --context west",
    "permission grant ada greeter greet --context west",
    "permission list --context west",
    "permission reject ada greeter greet --reason no --context west",
    "permission revoke ada greeter greet --context west",
    "replica canary abort greeter --context west",
    "replica canary promote greeter --context west",
    "replica change-owner greeter ada --context west",
    "replica delete greeter --auto-approve --context west",
    "replica describe greeter --context west",
    "replica diff greeter --context west",
    "replica disable greeter --context west",
    "replica enable greeter --context west",
    "replica graph --context west",
    "replica history greeter --context west",
    "replica list --context west",
    "replica load ghcr.io/acme/hello --context west",
    "replica logs greeter --context west",
    "replica place greeter ssd --context west",
    "replica pods greeter --context west",
    "replica refresh greeter --auto-approve --context west",
    "replica rollback greeter --context west",
    "replica scale greeter 2 --context west",
    "request approve 1 --context west",
    "request create ghcr.io/acme/hello --context west",
    "request diff 1 --context west",
    "request list --context west",
    "request reject 1 --reason no --context west",
    "request show 1 --context west",
    "secret delete token --auto-approve --context west",
    "secret edit token --context west",
    "secret get token --context west",
    "secret list --context west",
    "secret set token --from-file {folder}/file --context west",
    "state export demo --context west",
    "state import demo {folder}/file --auto-approve --context west",
    "state migrate --abandon --auto-approve --context west",
    "state prune --auto-approve --context west",
    "state reassign --from ada --to eve --auto-approve --context west",
    "user add ada me --context west",
    "user define on-call greeter/greet --context west",
    "user delete-set on-call --context west",
    "user grant ada on-call --context west",
    "user list --context west",
    "user permissions --context west",
    "user remove ada --context west",
    "user rename ada eve --context west",
    "user revoke ada on-call --context west",
    "user sets --context west",
)
CLUSTERS = (
    "cluster backup {folder}/new --passphrase-file {folder}/file --cluster west",
    "cluster restore {folder}/backup --passphrase-file {folder}/file --cluster west",
    "cluster delete --yes --cluster west",
    "cluster logs --cluster west",
    "cluster upgrade --images {folder}/images.json --yes --cluster west",
)
LOCAL = (
    "cluster backup {folder}/new --passphrase-file {folder}/file --local west",
    "cluster restore {folder}/backup --passphrase-file {folder}/file --local west",
    "cluster bootstrap west --local west",
    "cluster claim-super-admin-access --cluster other --local west",
    "cluster delete --yes --local west",
    "cluster manifest --local west",
)
KUBECONFIGS = (
    "cluster backup {folder}/new --passphrase-file {folder}/file --namespace east --kubeconfig {folder}/kube",
    "cluster restore {folder}/backup --passphrase-file {folder}/file --namespace east --kubeconfig {folder}/kube",
    "cluster claim-super-admin-access --cluster other --namespace east --kubeconfig {folder}/kube",
    "cluster delete --yes --namespace east --kubeconfig {folder}/kube",
)
KUBE_CONTEXTS = (
    "cluster backup {folder}/new --passphrase-file {folder}/file --kube-context there",
    "cluster restore {folder}/backup --passphrase-file {folder}/file --namespace east --kube-context there",
    "cluster claim-super-admin-access --cluster other --namespace east --kube-context there",
    "cluster delete --yes --kube-context there",
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Configure the cluster `east`, and return a folder with what commands read first."""
    monkeypatch.setenv("RESIDE_CONFIG", str(tmp_path))
    monkeypatch.setenv("RESIDE_LOCAL_STATE", str(tmp_path / "local"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kube"))
    monkeypatch.delenv("RESIDE_LOCAL_CLUSTER", raising=False)
    cluster = {"name": "east", "namespace": "reside", "alphaReplicaId": "co_zAlpha"}
    document = {
        "currentContext": "east",
        "contexts": [{"name": "east", "cluster": "east", "account": "admin"}],
        "clusters": [cluster],
        "accounts": [{"name": "admin", "accountId": "co_zAdmin", "encryptedAgentSecret": "c2VjcmV0"}],
    }
    (tmp_path / "config.yaml").write_text(json.dumps(document))
    (tmp_path / "config.yaml").chmod(0o600)
    kubeconfig = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "clusters": [{"name": "here", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "me", "user": {"token": "t"}}],
    }
    (tmp_path / "kube").write_text(json.dumps(kubeconfig))
    (tmp_path / "file").write_text(PASSPHRASE)
    images = dict.fromkeys(("alpha", "kubernetes-sentinel", "seed", "jazz", "etcd"), "r/x@sha256:" + "c" * 64)
    (tmp_path / "images.json").write_text(json.dumps(images))
    make(tmp_path / "hello", Kind.replica, parse_names("hello", "ghcr.io/acme"))
    return tmp_path


async def no_parts() -> AsyncIterator[bytes]:
    for none in ():
        yield none


@pytest.fixture
def _backup(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a backup of a cluster in the namespace `east`."""
    monkeypatch.setattr(sealing, "PASSES", 1)
    monkeypatch.setattr(sealing, "MEMORY", 8192)
    with (folder / "backup").open("wb") as file:
        writer = ArchiveWriter(file, SecretStr(PASSPHRASE))
        writer.add(OBJECTS, b"[]")
        anyio.run(writer.add_parts, JAZZ, no_parts())
        writer.finish(Manifest("4f", "2026-01-02T03:04:05+00:00", "east", "co_zAlpha"))


def ends(line: str, folder: Path, capsys: pytest.CaptureFixture[str], says: str) -> None:
    """Check how a command ends."""
    code = main.run(line.replace("{folder}", str(folder)).split())
    check_mistake(code, capsys.readouterr().err, 1, says)


@pytest.mark.parametrize("line", CONTEXTS)
def test_the_context_is_the_one_that_is_named(line: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ends(line, folder, capsys, r"context 'west' is not in .* \(known: east\)")


def test_the_doctor_examines_the_context_that_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["doctor", "--context", "west", "--wide", "--output", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert any("context 'west' is not in" in each["what"] for each in found)


@pytest.mark.parametrize("line", CLUSTERS)
def test_the_cluster_is_the_one_that_is_named(line: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ends(line, folder, capsys, r"'west' is not in .* \(known: east\)")


@pytest.mark.parametrize("line", LOCAL)
def test_the_local_cluster_is_the_one_that_is_named(
    line: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ends(line, folder, capsys, "the local cluster 'west' does not exist")


@pytest.mark.usefixtures("_backup")
@pytest.mark.parametrize("line", KUBECONFIGS)
def test_the_kubeconfig_is_the_one_that_is_named(
    line: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBECONFIG")
    ends(line, folder, capsys, r"Kubernetes at https://127\.0\.0\.1:1 can't be reached")


@pytest.mark.usefixtures("_backup")
@pytest.mark.parametrize("line", KUBE_CONTEXTS)
def test_the_context_of_the_kubeconfig_is_the_one_that_is_named(
    line: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ends(line, folder, capsys, r"context 'there' is not in .* \(known: here\)")
