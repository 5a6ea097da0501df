"""One ReSide for most end-to-end tests, and an empty Kubernetes for those that create ReSide."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from e2e.bootstraps import OWN, Spare, beside, bootstrap, contents
from e2e.pages import scripts
from support.clusters import fresh_state
from support.eventually import eventually_sync
from support.platform import ROOT, Platform

from reside.cli.cluster_options import IMAGES
from reside.local import LocalCluster
from reside.seed.settings import IMAGE_DOCUMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="package")
def platform() -> Iterator[Platform]:
    """Yield a whole ReSide with the greeter loaded, created by the first command of the README: `make up`."""
    with _new_platform("e2e") as platform:
        _keep_python_environment()
        (first, *_) = scripts("Only this machine")
        done = _run(platform, ["bash", "-c", first], OPTIONS=f"--name {platform.name}")
        yield replace(platform, up_output=done.stdout + done.stderr)


@pytest.fixture(scope="package")
def kubernetes() -> Iterator[Platform]:
    """Yield an embedded Kubernetes with an ingress controller, whose registry has the images, without ReSide in it."""
    with _new_platform("empty") as platform:
        info = LocalCluster(platform.name, platform.local_state / platform.name, ingress=True).up()
        images = platform.folder / "state" / IMAGES
        images.parent.mkdir(mode=0o700)
        build = [sys.executable, str(ROOT / "images/build.py"), "--push", str(info.registry_loopback)]
        built = _run(platform, [*build, "--documents", str(images.with_name(IMAGE_DOCUMENTS))])
        images.write_text(json.dumps(json.loads(built.stdout)))
        yield platform


@pytest.fixture(scope="package")
def spare(kubernetes: Platform) -> Spare:
    """Return a cluster that a test may delete."""
    cluster = beside(kubernetes, "spare")
    kubernetes.kubectl("create", "namespace", cluster.namespace)
    eventually_sync("the namespace's own objects", lambda: set(contents(cluster)) >= OWN)
    before = set(contents(cluster))
    cluster.run(*bootstrap(cluster), seconds=600)
    return Spare(cluster, before)


@contextmanager
def _new_platform(name: str) -> Iterator[Platform]:
    state = fresh_state(name)
    try:
        yield Platform(name, local_state=state.parent, folder=state.parent)
    finally:
        LocalCluster(name, state).down(delete_state=True)
        shutil.rmtree(state.parent)


def _keep_python_environment() -> None:
    """Let `make` take the environment that runs this test, which `make test` has made, in a worktree too."""
    stamp = ROOT / ".venv/.synced"
    if not stamp.exists() or any(
        (ROOT / name).stat().st_mtime > stamp.stat().st_mtime for name in ("pyproject.toml", "uv.lock")
    ):
        stamp.touch()


def _run(platform: Platform, command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    environment = platform.environment | variables
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done
