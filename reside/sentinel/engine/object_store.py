"""The files of a stack whose state is in an object store (`EngineSettings.backend`), such as `s3://bucket/prefix`.

The workspace on the volume has only the stack's settings and the mark of an operation that runs. Its loss costs one
request and one refresh for each stack: the next operation finds the state in the store, reads the settings from it, and
begins as after an interrupted operation, since the mark is lost, too.

An object store replaces objects as a whole, so a state is never torn, and nothing needs to be synced or repaired. Locks
in it are objects without a lease. Only the operation that runs on the stack uses them, so those that it finds after an
interrupted operation belong to an engine that crashed.
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from reside.common.files import write_private
from reside.sentinel.engine.saved_state import is_settings, settings_of
from reside.sentinel.engine.stack_files import StackFiles, content_of, project_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reside.sentinel.engine.settings import EngineSettings


class ObjectStoreFiles(StackFiles):
    """The workspace of one stack; see `StackFiles` for what it does not override.

    Args:
        settings: the settings of the engine.
        stack: the stack.
        backend: the address of the store.
    """

    def __init__(self, settings: EngineSettings, stack: str, backend: str) -> None:
        super().__init__(settings, stack)
        self._project_text = project_file(address_of(backend, stack))
        self._shares_salt = settings.secrets_provider == "passphrase"

    is_remote = True

    @property
    def pending(self) -> bool:
        """True: it is not known whether the state has pending operations, so a failure is followed by a refresh."""
        return True

    @property
    def exists(self) -> bool:
        """Whether it is known that the stack exists in the store."""
        return content_of(self._project) == self._project_text.encode() and is_settings(content_of(self._config))

    def prepare(self) -> None:
        """Create the workspace. Settings of a stack in another backend say nothing about this one."""
        self.workspace.mkdir(parents=True, exist_ok=True, mode=0o700)
        if content_of(self._project) != self._project_text.encode():
            self._config.unlink(missing_ok=True)
            write_private(self._project, self._project_text)

    def repair(self) -> None:
        """Do nothing: the store replaces a state as a whole."""

    def found(self, deployment: dict[str, Any]) -> bool:
        """Note that the store has the stack, as after an interrupted operation; return whether it can be used.

        Args:
            deployment: its exported state.
        """
        settings = settings_of(deployment)
        if settings is None:
            return False  # a stack without an operation: no secret, no object
        self.mark_running()
        write_private(self._config, settings)
        return True

    def lost(self) -> None:
        """Note that the store does not have the stack."""
        self._config.unlink(missing_ok=True)

    @contextmanager
    def shared_salt(self) -> Iterator[None]:
        """Share the salt if secrets are encrypted with the passphrase; see `StackFiles.shared_salt`."""
        if self._shares_salt:
            with super().shared_salt():
                yield
        else:
            self._config.unlink(missing_ok=True)
            yield

    def sync_new(self) -> None:
        """Do nothing: what the volume loses is read from the store."""

    def sync(self) -> None:
        """Do nothing: the store has the state."""

    def clean(self) -> None:
        """Do nothing: a rule of the store removes histories that are old."""

    def remove(self) -> None:
        """Remove the workspace."""
        shutil.rmtree(self.workspace, ignore_errors=True)


def address_of(backend: str, stack: str) -> str:
    """Return the address of the backend of one stack: a folder of its own, so that no stack slows down others."""
    parts = urlsplit(backend)
    return parts._replace(path=f"{parts.path.rstrip('/')}/{stack}").geturl()
