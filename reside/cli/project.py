"""Run the bootstrap program as `pulumi up` in the repository's root does, with progress and a short error message.

Pulumi's Automation API runs the project in place, with the program in this process: the same program, the same state
(`.state`, unless `RESIDE_STATE` names another folder) and therefore the same stack as a manual `pulumi up`.

Invariants: the passphrase never appears in an argument or in the output; the encryption salt or key that Pulumi adds to
the stack's tracked configuration file is removed after the run, because the state contains it as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reside.access.client import connect
from reside.access.cures import with_cure
from reside.access.objects import cluster_uid
from reside.cli import crash, scratch, stack_owner, state_store, vault
from reside.cli.config import config_folder
from reside.common.files import write_private
from reside.local import Toolchain
from reside.model.errors import ResideError
from reside.seed.settings import SETTINGS_FILE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pulumi.automation import EngineEvent

    from reside.cli.engine_stack import BootstrapStack
    from reside.seed.settings import BootstrapSettings

ROOT = Path(__file__).resolve().parents[2]
OTHER_BOOTSTRAP_S = 600.0
"""Seconds to wait for another bootstrap of the same stack on this machine."""
FORGET_S = 5.0
"""Seconds to wait for the end of a bootstrap whose state is removed."""
_COMPONENT = "reside:bootstrap:"
_ERROR_LINE = re.compile(r"(?:Exception calling application|error): (?:Exception calling application: )?(.+)")
_GENERIC_ERRORS = ("update failed", "preview failed", "resource operation failed")


class BootstrapFailedError(ResideError):
    """The bootstrap program failed; another run continues where it stopped."""


def is_checkout() -> bool:
    """Return whether this package is part of a checkout, which has the bootstrap program; else it was installed."""
    return (ROOT / "Pulumi.yaml").exists()


def checkout(command: str) -> Path:
    """Return the root of the checkout, for a command that needs what is not in the installed package.

    Raises:
        ResideError: this package was installed without a checkout; the message names the command and a cure.
    """
    if not is_checkout():
        raise ResideError(
            f"{command} needs a checkout of ReSide, and this `reside` was installed without one: run it as "
            "`.venv/bin/reside` of a checkout after `make tools`. `reside images push --archive FILE` and `reside "
            "cluster manifest` need none"
        )
    return ROOT


def state_folder() -> Path:
    """Return the folder of the bootstrap's state and the images' digests.

    It is `RESIDE_STATE`, else `.state` in the checkout, else one of this user.
    """
    folder = os.environ.get("RESIDE_STATE")
    if folder:
        return Path(folder).absolute()
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share"
    return ROOT / ".state" if is_checkout() else Path(data) / "reside/state"


def make_state_folder() -> Path:
    """Return the state folder; create it if it is missing, so that only this user may read it."""
    state = state_folder()
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    return state


def backend_url(state: Path) -> str:
    """Return the URL of Pulumi's state: that of the object store, if there is one, else of a folder.

    In a folder it has no attribute files, because those are not written atomically.
    """
    return state_store.store() or f"file://{state}?metadata=skip"


def engine_environment(settings: BootstrapSettings, stack: str) -> dict[str, str]:
    """Write the settings to the file that the program reads; return the environment of Pulumi's engine for a stack."""
    file = config_folder() / "bootstrap" / f"{stack}.json"
    write_private(file, settings.to_json(), make_folder=True)
    return {SETTINGS_FILE_VARIABLE: str(file), **_pulumi_environment()}


def _pulumi_environment() -> dict[str, str]:
    return {
        "PATH": os.pathsep.join([str(ROOT / ".venv/bin"), Toolchain.default().search]),
        "PULUMI_BACKEND_URL": backend_url(state_folder()),
        "PULUMI_CONFIG_PASSPHRASE": vault.bootstrap_passphrase(),
        "PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER": "true",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_AUTOMATION_API_SKIP_VERSION_CHECK": "true",
    }


def up(settings: BootstrapSettings, stack: str, report: Callable[[str, str], None]) -> dict[str, Any]:
    """Run the bootstrap; call `report` with each step and its event.

    Returns:
        the stack's outputs.

    Raises:
        BootstrapFailedError: a step failed; the message contains the engine's errors.
    """
    with _stack(settings, stack) as opened, _translate_errors():
        return opened.run(_event_handler(report))


@contextlib.contextmanager
def _stack(settings: BootstrapSettings, stack: str) -> Iterator[BootstrapStack]:
    from reside.cli.engine_stack import open_stack  # noqa: PLC0415 - slow to import

    root = checkout("a bootstrap")
    state = make_state_folder()
    environment = engine_environment(settings, stack)
    os.environ["PATH"] = environment["PATH"]  # the Automation API looks for the engine on this process's PATH
    file = root / "stacks" / f"Pulumi.{stack}.yaml"
    with _without_salt(file), _translate_errors():
        uid = asyncio.run(_cluster_uid(settings))
        crash.archive_other_state(state, stack, uid)
        crash.wait_for_others(state, stack, OTHER_BOOTSTRAP_S)
        crashed = crash.remove_stale_locks(state, stack)
        if crashed:
            crash.remove_partial_files(state)
        with scratch.folder(state, stack) as temporary:
            variables, exists = {**environment, "TMPDIR": str(temporary)}, _probably_exists(state, stack)
            opened = open_stack(stack, root, variables, settings, key=state_store.key(), exists=exists)
            if store := state_store.store():
                known = stack_owner.owner_of(opened.export_stack().deployment)
                stack_owner.check(stack, store, known, stack_owner.Owner(settings.namespace, uid))
            if crashed or store:  # the locks of an object store don't tell whether a run was killed
                crash.clear_pending_operations(opened)
            yield opened


def _probably_exists(state: Path, stack: str) -> bool:
    """Return whether the folder has a state of the stack; of an object store, assume it."""
    return bool(state_store.store()) or any((state / ".pulumi/stacks").glob(f"*/{stack}.json"))


def forget(stack: str, uid: str | None, namespace: str | None = None) -> None:
    """Remove the state of a stack whose cluster was deleted, wherever it is; keep that of another cluster.

    Args:
        stack: name of the stack.
        uid: unique id of the Kubernetes cluster; None if it is unknown.
        namespace: namespace of the cluster; None if it is unknown.
    """
    state = state_folder()
    crash.wait_for_others(state, stack, FORGET_S)
    crash.remove_state(state, stack, uid)
    if state_store.store():
        _remove_stack(stack, stack_owner.Owner(namespace, uid))


def _remove_stack(stack: str, deleted: stack_owner.Owner) -> None:
    from pulumi import automation  # noqa: PLC0415 - slow to import

    root, environment = checkout("the removal of a state in an object store"), _pulumi_environment()
    os.environ["PATH"] = environment["PATH"]  # as in `_stack`
    with _translate_errors():
        workspace = automation.LocalWorkspace(work_dir=str(root), env_vars=environment)
        if not any(found.name == stack for found in workspace.list_stacks()):
            return
        if not stack_owner.owner_of(workspace.export_stack(stack).deployment).differs(deleted):
            workspace.remove_stack(stack, force=True, preserve_config=True)


async def _cluster_uid(settings: BootstrapSettings) -> str | None:
    async with connect(settings.target) as client:
        return await cluster_uid(client)


@contextlib.contextmanager
def _without_salt(file: Path) -> Iterator[None]:
    try:
        yield
    finally:
        if file.exists():
            lines = file.read_text().splitlines(keepends=True)
            rest = [line for line in lines if not line.startswith(state_store.STACK_LINES)]
            if not "".join(rest).strip():
                file.unlink()
            elif rest != lines:
                file.write_text("".join(rest))


@contextlib.contextmanager
def _translate_errors() -> Iterator[None]:
    from pulumi.automation import CommandError  # noqa: PLC0415 - slow to import

    try:
        yield
    except CommandError as error:
        raise BootstrapFailedError(reason(str(error))) from None


def reason(text: str) -> str:
    """Return why the engine failed: the messages of the error lines in its output, without duplicates."""
    found = [match.group(1).strip() for line in text.splitlines() if (match := _ERROR_LINE.search(line))]
    specific = [message for message in dict.fromkeys(found) if message not in _GENERIC_ERRORS]
    return with_cure("; ".join(specific) or " ".join(text.split()[-40:]))


def _event_handler(report: Callable[[str, str], None]) -> Callable[[EngineEvent], None]:
    def handle(event: EngineEvent) -> None:
        if (begun := event.resource_pre_event) is not None and (name := step_name(begun.metadata.urn)):
            report(name, "started" if begun.metadata.op != "same" else "unchanged")
        elif (done := event.res_outputs_event) is not None and (name := step_name(done.metadata.urn)):
            report(name, "done" if done.metadata.op != "same" else "unchanged")

    return handle


def step_name(urn: str) -> str | None:
    """Return `phase resource` for a URN; None for the stack, its components and the provider, which are not steps."""
    path, _, name = urn.rpartition("::")
    kinds = path.rpartition("::")[2].split("$")
    if kinds[-1].startswith(("pulumi:", _COMPONENT)):
        return None
    phase = next((kind.removeprefix(_COMPONENT) for kind in kinds if kind.startswith(_COMPONENT)), "Stack")
    return f"{phase} {name}"
