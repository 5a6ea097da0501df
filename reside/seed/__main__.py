"""The seed as a process: run the bootstrap program on the cluster that this pod runs in, then exit.

The state of Pulumi's engine is discarded: every step finds what an earlier run created, and after the hand-over the
Sentinel adopts the objects. SIGTERM is forwarded to the engine once; the engine then finishes the step in progress.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from reside.access.target import Target
from reside.model.errors import ResideError
from reside.seed import logs, outcome, recording
from reside.seed import settings as stack_settings
from reside.seed.rendering import external_names
from reside.seed.settings import SETTINGS_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

STACK = "seed"
NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
RECORD_S = 30.0
"""Seconds that a record of invalid settings may take."""
UNRECORDED = "the bootstrap program failed: see `kubectl logs job/seed`"
"""Recorded if the program fails outside of its steps, such as in an object that Kubernetes refuses."""
PROJECT = Path(os.environ.get("RESIDE_PROJECT", "/opt/reside"))


def settings_of(environment: Mapping[str, str]) -> stack_settings.BootstrapSettings:
    """Return the Job's settings, with the values of the placeholders.

    Raises:
        InvalidInput: settings are missing, malformed or contradictory.
    """
    found = stack_settings.from_environment(environment)
    if found is None:
        raise stack_settings.missing(SETTINGS_VARIABLE)
    names = external_names(environment, gateway=found.gateway is not None)
    return stack_settings.parse({**found.model_dump(by_alias=True, exclude_none=True), **names}, SETTINGS_VARIABLE)


def engine_environment(settings: stack_settings.BootstrapSettings, folder: Path) -> dict[str, str]:
    """Return the engine's environment: all files in `folder`, a random passphrase for the discarded state."""
    state = folder / "state"
    state.mkdir()
    return os.environ | {
        SETTINGS_VARIABLE: settings.to_json(),
        "PULUMI_BACKEND_URL": f"file://{state}",
        "PULUMI_HOME": str(folder / "home"),
        "TMPDIR": str(folder),
        "PULUMI_CONFIG_PASSPHRASE": secrets.token_urlsafe(24),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
    }


def project_in(folder: Path) -> Path:
    """Create a project folder for the program in the image; the root's Pulumi.yaml contains paths of a checkout."""
    project = folder / "project"
    project.mkdir()
    runtime = {"name": "python", "options": {"virtualenv": str(PROJECT / ".venv")}}
    document = {"name": "reside", "runtime": runtime, "main": str(PROJECT)}
    (project / "Pulumi.yaml").write_text(json.dumps(document))  # JSON is YAML
    return project


def main() -> int:
    """Run `pulumi up`; return its exit code, or 2 for invalid settings."""
    logs.configure()
    start = outcome.timestamp()
    try:
        settings = settings_of(os.environ)
    except ResideError as error:
        sys.stderr.write(f"seed: {error}\n")
        recording.record_failure(own_target(), None, str(error))
        return 2
    folder = Path(tempfile.mkdtemp(prefix="seed-"))
    try:
        code = _bootstrap(project_in(folder), engine_environment(settings, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if code != 0:
        recording.record_failure(settings.target, None, UNRECORDED, since=start)
    return code


def own_target() -> Target:
    """Return the namespace of this pod; without a service account, a target that can't be reached."""
    namespace = NAMESPACE_FILE.read_text().strip() if NAMESPACE_FILE.exists() else "default"
    return Target(namespace, "in-cluster", None, None, RECORD_S)


def _bootstrap(project: Path, environment: dict[str, str]) -> int:
    initialized = subprocess.run(
        ["pulumi", "stack", "init", STACK, "--non-interactive"], cwd=project, env=environment, check=False
    )
    if initialized.returncode != 0:
        return initialized.returncode
    command = ["pulumi", "up", "--yes", "--skip-preview", "--stack", STACK, "--non-interactive", "--color=never"]
    process = subprocess.Popen(command, cwd=project, env=environment, start_new_session=True)

    def forward(_number: int, _frame: FrameType | None) -> None:
        # The first signal stops gracefully; the kubelet sends SIGKILL after the grace period
        process.send_signal(signal.SIGINT)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    signal.signal(signal.SIGTERM, forward)
    return process.wait()


if __name__ == "__main__":
    sys.exit(main())
