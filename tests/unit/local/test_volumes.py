"""Which volumes the local cluster's provisioner creates and removes."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from reside.local.volumes import PROVISIONER, Create, Provisioner, Remove, decide


def claim(phase: str = "Pending", provisioner: str = PROVISIONER, volume: str = "") -> dict[str, Any]:
    return {
        "metadata": {
            "namespace": "ns",
            "name": "data",
            "uid": "u1",
            "annotations": {"volume.kubernetes.io/storage-provisioner": provisioner},
        },
        "spec": {
            "resources": {"requests": {"storage": "1Gi"}},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "standard",
            **({"volumeName": volume} if volume else {}),
        },
        "status": {"phase": phase},
    }


def volume(phase: str, provisioner: str = PROVISIONER, policy: str = "Delete") -> dict[str, Any]:
    return {
        "metadata": {"name": "pvc-u1", "annotations": {"pv.kubernetes.io/provisioned-by": provisioner}},
        "spec": {"hostPath": {"path": "/v/ns_data_u1"}, "persistentVolumeReclaimPolicy": policy},
        "status": {"phase": phase},
    }


def test_a_pending_claim_gets_a_volume_reserved_for_it() -> None:
    (create,) = decide([claim()], [])
    assert isinstance(create, Create)
    assert create.folder == "ns_data_u1"
    assert create.volume["spec"]["claimRef"] == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": "ns",
        "name": "data",
        "uid": "u1",
    }


@pytest.mark.parametrize(
    "other", [claim("Bound"), claim(provisioner="somebody.else"), claim(volume="chosen")], ids=["bound", "other", "set"]
)
def test_claims_that_do_not_wait_for_us_are_left_alone(other: dict[str, Any]) -> None:
    assert decide([other], []) == []


def test_a_volume_is_not_made_twice() -> None:
    assert decide([claim()], [volume("Available")]) == []


@pytest.mark.parametrize("phase", ["Released", "Failed"])
def test_a_released_volume_is_removed(phase: str) -> None:
    assert decide([], [volume(phase)]) == [Remove("pvc-u1", Path("/v/ns_data_u1"))]


@pytest.mark.parametrize(
    "kept", [volume("Bound"), volume("Released", "somebody.else"), volume("Released", policy="Retain")]
)
def test_volumes_in_use_of_others_or_to_be_retained_are_kept(kept: dict[str, Any]) -> None:
    assert decide([], [kept]) == []


def test_volumes_without_annotations_or_with_foreign_paths_are_ignored() -> None:
    foreign = {"metadata": {"name": "nfs"}, "spec": {"nfs": {}}, "status": {"phase": "Released"}}
    assert decide([], [foreign]) == []


@pytest.mark.parametrize("path", ["..", "../other", "a/b", "."])
def test_a_volume_that_lies_elsewhere_keeps_its_data(path: str, tmp_path: Path) -> None:
    """A user who may create volumes chooses their folder, and must not be able to have any folder removed."""
    base = tmp_path / "volumes"
    (base / "a/b").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    found = {**volume("Released"), "spec": {**volume("Released")["spec"], "hostPath": {"path": f"{base}/{path}"}}}
    asked = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.method)
        return httpx2.Response(200, json={"items": [found] if request.url.path.endswith("volumes") else []})

    with httpx2.Client(transport=httpx2.MockTransport(answer), base_url="http://api") as client:
        Provisioner(client, base).reconcile()
    assert set(asked) == {"GET"}
    assert (base / "a/b").exists()
    assert (tmp_path / "other").exists()
