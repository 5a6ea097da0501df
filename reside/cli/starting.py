"""Start a local cluster and build ReSide's images into its registry: for `make up` and `cluster bootstrap`."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from reside.cli import project
from reside.cli.cluster_options import IMAGES
from reside.cli.progress import Steps
from reside.common.files import write_private
from reside.local import LocalCluster
from reside.model.errors import ResideError
from reside.seed.settings import IMAGE_DOCUMENTS

if TYPE_CHECKING:
    from pathlib import Path

    from reside.local import ClusterInfo, Event


def start_kubernetes(local: str) -> ClusterInfo:
    """Start the local cluster and wait until it is ready; return how to reach it."""
    with Steps("kubernetes") as steps:

        def report(event: Event) -> None:
            steps.report(event.component, {"starting": "started", "ready": "done"}.get(event.phase, event.phase))

        return LocalCluster(local).up(report)


def build_images(info: ClusterInfo) -> Path:
    """Build the images that are missing in the registry; return the file that contains the digests."""
    digests = project.state_folder() / IMAGES
    digests.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = [sys.executable, str(project.ROOT / "images/build.py"), "--push", str(info.registry_loopback)]
    command += ["--documents", str(digests.with_name(IMAGE_DOCUMENTS))]
    finished = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, cwd=project.ROOT)
    if finished.returncode != 0:
        raise ResideError("the images could not be built: see the errors above")
    write_private(digests, json.dumps(json.loads(finished.stdout), indent=2) + "\n")
    return digests
