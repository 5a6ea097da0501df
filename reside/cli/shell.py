"""What a shell needs for `pulumi` at the root: the commands that `reside cluster env` prints.

Invariants: none of them holds the passphrase; after a run, neither credentials in temporary files nor the encryption
salt in a tracked file are left. Bash, zsh and dash understand them.
"""

from __future__ import annotations

import shlex

from reside.cli import project, vault
from reside.cli.secret_store import SERVICE

_FUNCTION = """\
pulumi() (
  tracked={file}
  TMPDIR=$(mktemp -d) || exit
  export TMPDIR
  trap 'rm -rf "$TMPDIR"; sed -i "/^{salt}/d" "$tracked"' EXIT
  command pulumi "$@"
)"""
"""The Kubernetes provider writes the kubeconfig into a temporary file and leaves it; Pulumi writes the salt, which the
state holds as well, into the stack's file. Both are taken away when the command ends, however it ends."""


def lines() -> list[str]:
    """Shell commands after which `pulumi` at the root works on the same stacks as `reside cluster bootstrap`.

    Makes the state's folder, without which Pulumi refuses its backend, and the passphrase.
    """
    project.make_state_folder()
    file = project.ROOT / "stacks/Pulumi.local.yaml"
    return [
        f'export PATH={":".join(shlex.quote(str(folder)) for folder in _folders())}:"$PATH"',
        f"export PULUMI_BACKEND_URL={shlex.quote(project.backend_url())}",
        "export PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER=true PULUMI_SKIP_UPDATE_CHECK=true",
        _passphrase(),
        _FUNCTION.format(file=shlex.quote(str(file)), salt=project.SALT),
    ]


def _folders() -> list[str]:
    return [str(folder) for folder in (project.ROOT / ".venv/bin", project.ROOT / ".tools/bin") if folder.exists()]


def _passphrase() -> str:
    vault.root_passphrase()
    file = vault.passphrase_file()
    if file is None:
        return f'export PULUMI_CONFIG_PASSPHRASE="$(python -m keyring get {SERVICE} passphrase)"'
    return f"export PULUMI_CONFIG_PASSPHRASE_FILE={shlex.quote(str(file))}"
