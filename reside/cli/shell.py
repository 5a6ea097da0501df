"""The shell commands that `reside cluster env` prints, to run `pulumi` in the repository's root.

Invariants: no command contains the passphrase. A run leaves neither credentials in temporary files nor the encryption
salt in a tracked file. The commands work in bash, zsh and dash.
"""

from __future__ import annotations

import shlex

from reside.cli import project, vault
from reside.cli.secret_store import SERVICE
from reside.cli.state_store import STACK_LINES

_FUNCTION = """\
pulumi() (
  tracked={file}
  TMPDIR=$(mktemp -d) || exit
  export TMPDIR
  trap 'rm -rf "$TMPDIR"; sed -i -E "/^({lines}):/d" "$tracked"' EXIT
  command pulumi "$@"
)"""
"""The Kubernetes provider writes the kubeconfig to a temporary file and does not delete it. Pulumi writes the salt or
key, which the state contains as well, to the stack's file. Both are removed when the command ends, even if it fails."""


def lines() -> list[str]:
    """Return shell commands after which `pulumi` in the root works on the same stacks as `reside cluster bootstrap`.

    Create the passphrase and the state folder, without which Pulumi refuses its backend.
    """
    root = project.checkout("`reside cluster env`")
    project.make_state_folder()
    file = root / "stacks/Pulumi.local.yaml"
    return [
        f'export PATH={":".join(shlex.quote(str(folder)) for folder in _folders())}:"$PATH"',
        f"export PULUMI_BACKEND_URL={shlex.quote(project.backend_url(project.state_folder()))}",
        "export PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER=true PULUMI_SKIP_UPDATE_CHECK=true",
        _passphrase(),
        _FUNCTION.format(file=shlex.quote(str(file)), lines="|".join(line.rstrip(":") for line in STACK_LINES)),
    ]


def _folders() -> list[str]:
    return [str(folder) for folder in (project.ROOT / ".venv/bin", project.ROOT / ".tools/bin") if folder.exists()]


def _passphrase() -> str:
    vault.bootstrap_passphrase()
    file = vault.passphrase_file()
    if file is None:
        return f'export PULUMI_CONFIG_PASSPHRASE="$(python -m keyring get {SERVICE} passphrase)"'
    return f"export PULUMI_CONFIG_PASSPHRASE_FILE={shlex.quote(str(file))}"
