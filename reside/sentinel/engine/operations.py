"""One engine operation from begin to end, blocking, on a thread of its own.

An operation is: mend what the last one left, make the stack if it is new, run one command with program and event log,
read the result. Errors leave as errors of errors.py.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reside.model.constants import PROVIDER_VERSION
from reside.sentinel.engine.diagnosis import diagnose
from reside.sentinel.engine.errors import ApplyRejected, EngineBroken, EngineUnavailable
from reside.sentinel.engine.eventpipe import EventPipe
from reside.sentinel.engine.events import EventReader
from reside.sentinel.engine.port import ChangeSet, OnEvent, StackSpec
from reside.sentinel.engine.resources import ProviderSettings, resources
from reside.sentinel.engine.running import Program
from reside.sentinel.engine.store import Store, without_pending
from reside.sentinel.objects.masking import secret_values

if TYPE_CHECKING:
    from reside.sentinel.engine.running import Finished, Operator
    from reside.sentinel.engine.settings import EngineSettings

_QUIET = ["--color", "never", "--suppress-outputs", "--suppress-progress"]
_MISSING = "not found"


@dataclass(frozen=True)
class _Run:
    """What the one command that counts came to."""

    result: Finished
    reader: EventReader


class Operations:
    """Runs one operation.

    Args:
        settings: Where things stand.
        operator: Runs the commands.
    """

    def __init__(self, settings: EngineSettings, operator: Operator) -> None:
        self._settings = settings
        self._operator = operator

    def preview(self, stack: StackSpec, on_event: OnEvent) -> ChangeSet:
        """See :class:`reside.sentinel.engine.port.StackEngine`."""
        store = Store(self._settings, stack.name)
        new = not store.exists
        try:
            return self._change(["preview"], stack, on_event)
        finally:
            if new:
                store.forget()

    def apply(self, stack: StackSpec, on_event: OnEvent) -> ChangeSet:
        """See :class:`reside.sentinel.engine.port.StackEngine`.

        An object that the state knows but the cluster has lost makes an update fail; then the state is refreshed first.
        """
        try:
            return self._change(["up", "--yes", "--skip-preview"], stack, on_event)
        except ApplyRejected as error:
            if _MISSING not in error.message:
                raise
            Store(self._settings, stack.name).begin()  # as after a death
            return self._change(["up", "--yes", "--skip-preview"], stack, on_event)

    def destroy(self, name: str, on_event: OnEvent) -> ChangeSet:
        """See :class:`reside.sentinel.engine.port.StackEngine`."""
        store = Store(self._settings, name)
        if not store.exists:
            store.forget()
            return ChangeSet((), 0.0)
        # The program runs, with no objects, so that the provider's settings are today's and not those of the state.
        result = self._change(["destroy", "--yes", "--skip-preview", "--run-program"], StackSpec(name, ()), on_event)
        store.forget()
        return result

    def export(self, name: str) -> dict[str, Any]:
        """See :class:`reside.sentinel.engine.port.StackEngine`."""
        store = Store(self._settings, name)
        if not store.exists:
            return {}
        store.prepare()
        state: dict[str, Any] = json.loads(self._plain(store, ["stack", "export", "--stack", name]).stdout)
        return state

    def _change(self, arguments: list[str], stack: StackSpec, on_event: OnEvent) -> ChangeSet:
        began = time.monotonic()
        store = Store(self._settings, stack.name)
        more = self._make_ready(store, stack.name)
        store.begin()
        run = self._run(store, [*arguments, *more, *_QUIET, "--stack", stack.name], stack, on_event)
        if run.result.code >= 0:
            store.end()
        if run.result.code > 0 and self._operator.stopped:
            raise EngineUnavailable("the operation was stopped before its end")
        if run.result.code != 0:
            raise diagnose(run.result.code, run.reader.complaints, run.result.stderr, secret_values(stack.objects))
        return ChangeSet(run.reader.changes, time.monotonic() - began)

    def _make_ready(self, store: Store, name: str) -> list[str]:
        """Make or mend the stack; returns what must be added to the arguments of the operation.

        After a death the state is refreshed: it may still list objects whose deletion went through.
        """
        store.prepare()
        if not store.exists:
            store.share_salt()
            self._plain(store, ["stack", "init", name, "--secrets-provider", "passphrase", "--no-select"])
            store.keep_salt()
        elif store.interrupted:
            self._repair(store, name)
            return ["--refresh"]
        return []

    def _repair(self, store: Store, name: str) -> None:
        exported = json.loads(self._plain(store, ["stack", "export", "--stack", name]).stdout)
        mended = without_pending(exported)
        if mended is not None:
            file = store.workspace / "mended.json"
            file.write_text(json.dumps(mended), encoding="utf-8")
            self._plain(store, ["stack", "import", "--stack", name, "--file", str(file)])
            file.unlink()

    def _run(self, store: Store, arguments: list[str], stack: StackSpec, on_event: OnEvent) -> _Run:
        reader = EventReader()

        def receive(event: dict[str, Any]) -> None:
            progress = reader.read(event)
            if progress is not None:
                on_event(progress)

        provider = ProviderSettings(PROVIDER_VERSION, self._settings.namespace, self._settings.context)
        program = Program(stack.name, resources(stack.objects, provider))
        log = EventPipe(store.events, receive)
        flags = ["--exec-kind", "auto.inline", "--event-log", str(log.path)]
        try:
            result = self._operator.run([*arguments, *flags], store.workspace, program)
        finally:
            log.end()
        if result.code == 0 and log.failure is not None:
            raise EngineBroken(
                f"the engine's event log cannot be read ({type(log.failure).__name__}): versions differ?"
            )
        return _Run(result, reader)

    def _plain(self, store: Store, arguments: list[str]) -> Finished:
        result = self._operator.run([*arguments, "--color", "never"], store.workspace)
        if result.code != 0:
            raise diagnose(result.code, (), result.stderr, ())
        return result
