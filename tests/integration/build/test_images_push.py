"""`reside images push`: all images in a registry with a password and its own authority, nothing pushed twice."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import anyio
import pytest
from support.registry import PASSWORD, PrivateRegistry, private_registry

from reside.cli import project
from reside.model.constants import MANIFEST_LABEL
from reside.model.locations import located
from reside.model.manifest import decode_label
from reside.registry import ImageReference, RegistryClient, Snapshot
from reside.seed.settings import IMAGE_DOCUMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUN = "from reside.cli.main import main; main()"
pytestmark = pytest.mark.timeout(900)  # with an empty cache, it first creates the Debian tree


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateRegistry]:
    folder = tmp_path_factory.mktemp("private")
    with private_registry(folder) as running:
        yield running
    shutil.rmtree(folder)  # a gigabyte


def push(server: PrivateRegistry, folder: Path) -> tuple[dict[str, str], str]:
    """Run the command; return the images of the result, and the progress."""
    (folder / "config.json").write_text(server.login)
    (folder / "ca.pem").write_text(server.authority)
    environment = os.environ | {
        "DOCKER_CONFIG": str(folder),
        "RESIDE_REGISTRY_AUTHORITIES": json.dumps({server.host: str(folder / "ca.pem")}),
        "RESIDE_STATE": str(folder / "state"),
    }
    command = [sys.executable, "-c", RUN, "images", "push", f"{server.host}/acme/reside", "-o", "json"]
    finished = subprocess.run(
        command, env=environment, capture_output=True, text=True, cwd=project.ROOT, timeout=800, check=False
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == "", "the progress is on standard output"
    *progress, result = (json.loads(line) for line in finished.stdout.splitlines())
    assert result["event"] == "result"
    assert {each["event"] for each in progress} == {"message"}
    return result["images"], "\n".join(each["text"] for each in progress)


def test_every_image_is_pushed_once_with_the_digest_and_the_identity_that_it_has_everywhere(
    server: PrivateRegistry, tmp_path: Path
) -> None:
    first, progress = push(server, tmp_path)
    assert PASSWORD not in progress
    repository = f"{server.host}/acme/reside"
    client = RegistryClient({}, authorities={server.host: server.authority})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_CONFIG", str(tmp_path))
        for name in ("alpha", "alpha.v1", "greeting.v1", "greeter", "caller", "secret", "user-manager"):
            reference = ImageReference.parse(first[name])
            assert reference.digest is not None
            labels = anyio.run(client.describe, reference, reference.digest).labels
            identity = decode_label(labels[MANIFEST_LABEL]).identity
            assert reference.identity == located(identity, repository)
    kept = Snapshot.from_json((tmp_path / "state" / IMAGE_DOCUMENTS).read_text())
    images = json.loads((tmp_path / "state" / "images.json").read_text())
    assert all(kept.digest_of(ImageReference.parse(image)) for image in images.values())
    again, progress = push(server, tmp_path)
    assert again == first
    assert ": pushed" not in progress
    assert ": assembled" not in progress
