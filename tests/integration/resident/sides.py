"""Support for tests of the resident engine: two sides, stock and resident, and scenarios that run on both.

A scenario is a function of a :class:`Side`. It asserts what must be true, and every operation that it runs is recorded:
result, texts, events, state file, history. :func:`equal` plays it on both sides and compares the records.
"""

from __future__ import annotations

import difflib
import json
import os
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulumi.automation import CommandResult, LocalWorkspace, PulumiCommand, Stack, UpdateSummary
from pulumi.automation._stack import StackInitMode
from pulumi.automation.errors import CommandError
from support.resident_record import checkpoint, display, document, ephemeral, events, plain, text
from support.sentinel import get, kubectl, new_namespace

from reside.local.toolchain import Toolchain
from reside.resident import Engine, EngineDied, ResidentCommand, ResidentSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pulumi.automation.events import EngineEvent

    from reside.local import ClusterInfo

    Program = Callable[[], None]
    OnEvent = Callable[[EngineEvent], None]

PROJECT = "equal"
PASSPHRASE = "the-passphrase-of-a-resident-test"
PROVIDER = "4.25.0"
_TOOLS = ("pulumi", "pulumi-language-python", "pulumi-language-python-exec")
_PLUGINS = {"kubernetes": PROVIDER, "pulumi-python": "3.259.0"}
"""Installed in the side's home and not on PATH: Pulumi warns at each start of a plugin from PATH."""
_SETTLE = 30.0  # seconds until the last events of an operation must be there


@dataclass(frozen=True)
class Outcome:
    """The result of an operation: a result of the Automation API or its error, and the events."""

    result: Any
    error: CommandError | None
    events: list[EngineEvent]

    @property
    def changes(self) -> dict[str, int]:
        """Return how many resources had which change; raise the error if the operation had one."""
        if self.error is not None:
            raise self.error
        return next(dict(e.summary_event.resource_changes) for e in self.events if e.summary_event)


class OneRun(Stack):
    """A stack whose operations run only their command, without reading outputs and history afterwards.

    Those cost three more starts of the stock CLI for each operation; a scenario of their own compares them.
    """

    def outputs(self) -> dict[str, Any]:
        """Return nothing."""
        return {}

    def info(self, show_secrets: bool = True) -> UpdateSummary:
        """Return an empty summary."""
        return UpdateSummary("update", None, "", {}, {}, "not read")


class ExistingStack(OneRun):
    """A stack that sends no request before the first operation."""

    def __init__(self, name: str, workspace: LocalWorkspace) -> None:
        """Set the name."""
        self.name = name
        self.workspace = workspace
        self._mode = StackInitMode.SELECT


@dataclass
class Side:
    """One adapter, with state, folders and a namespace of its own."""

    name: str
    command: PulumiCommand
    folder: Path
    namespace: str
    info: ClusterInfo
    records: list[tuple[str, Any]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """The environment that each workspace of the side sets."""
        return {
            "PULUMI_HOME": str(self.folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{self.folder / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PATH": os.pathsep.join([str(self.folder / "bin"), f"{sys.prefix}/bin", os.defpath]),
            "KUBECONFIG": str(self.info.kubeconfig),
        }

    @property
    def engine(self) -> Engine:
        """The resident engine of the side's environment."""
        assert isinstance(self.command, ResidentCommand)
        return self.command.engine(self.environment)

    @property
    def names(self) -> dict[str, str]:
        """The side's own names and their replacements in a record."""
        return {str(self.folder): "FOLDER", self.namespace: "NAMESPACE"}

    def workspace(self, stack: str, **environment: str) -> LocalWorkspace:
        """Return a workspace for one stack, in a folder of its own."""
        folder = self.folder / "work" / stack
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "Pulumi.yaml").write_text(f"name: {PROJECT}\nruntime: python\n")
        variables = {**self.environment, **environment}
        return LocalWorkspace(work_dir=str(folder), pulumi_command=self.command, env_vars=variables)

    def stack(self, name: str, kind: type[Stack] = OneRun, **environment: str) -> Stack:
        """Create a stack."""
        return kind(name, self.workspace(name, **environment), StackInitMode.CREATE)

    def stack_of(self, name: str, **environment: str) -> Stack:
        """Return an existing stack, through a workspace with this environment."""
        return ExistingStack(name, self.workspace(name, **environment))

    def at(self, other: Side) -> Side:
        """Return this adapter on the state, folders and namespace of another side."""
        return replace(other, name=self.name, command=self.command, records=[])

    def hold_lock(self, stack: str) -> Path:
        """Lock a stack as a user of another machine does."""
        name = "0a0a0a0a-0000-4000-8000-000000000000.json"
        lock = self.folder / "state" / ".pulumi" / "locks" / "organization" / PROJECT / stack / name
        lock.parent.mkdir(parents=True, exist_ok=True)
        holder = {"pid": 1, "username": "somebody", "hostname": "elsewhere", "timestamp": "2026-01-01T00:00:00Z"}
        lock.write_text(json.dumps(holder))
        return lock

    def run(
        self, stack: Stack, verb: str, program: Program | None = None, watch: OnEvent | None = None, **options: Any
    ) -> Outcome:
        """Run and record an operation.

        With `racing=True`, it is not determined what the engine does before an error, so only the error's diagnostics
        are recorded.
        """
        racing = options.pop("racing", False)
        outcome, lines = self.operate(stack, verb, program, watch, **options)
        self.note(verb, self._diagnostics(outcome) if racing else self._record(stack, outcome, lines))
        return outcome

    def operate(
        self, stack: Stack, verb: str, program: Program | None = None, watch: OnEvent | None = None, **options: Any
    ) -> tuple[Outcome, dict[str, list[str]]]:
        """Run an operation of the Automation API; `verb` is the name of a method of `stack`.

        `watch` gets each event when it arrives, in a thread of its own. Returns also the lines of `stdout` and
        `stderr`.
        """
        seen: list[EngineEvent] = []
        lines: dict[str, list[str]] = {"stdout": [], "stderr": []}
        over = threading.Event()

        def on_event(event: EngineEvent) -> None:
            seen.append(event)
            if watch is not None:
                watch(event)
            if event.cancel_event is not None:
                over.set()

        result, error = None, None
        listeners = {"on_output": lines["stdout"].append, "on_error": lines["stderr"].append}
        try:
            result = getattr(stack, verb)(program=program, on_event=on_event, **listeners, **options)
        except CommandError as caught:
            error = caught
        assert not seen or isinstance(error, EngineDied) or over.wait(_SETTLE), f"{verb}: the event log has no end"
        if result is not None:
            for stream, received in lines.items():
                assert "\n".join(received) == getattr(result, stream)
        return Outcome(result, error, seen), lines

    def up(self, stack: Stack, program: Program | None, **options: Any) -> Outcome:
        """Run an update."""
        return self.run(stack, "up", program, **options)

    def note(self, what: str, value: Any) -> None:
        """Add something to the record."""
        self.records.append((what, value))

    def refused(self, what: str, act: Callable[[], Any]) -> CommandError:
        """Run something that must fail, and record its error."""
        try:
            act()
        except CommandError as error:
            self.fails(what, error)
            return error
        raise AssertionError(f"{what} did not fail on the {self.name} side")

    def fails(self, what: str, error: CommandError) -> None:
        """Record an error."""
        self.note(what, self._error(error))

    def _record(self, stack: Stack, outcome: Outcome, lines: dict[str, list[str]]) -> dict[str, Any]:
        chatter = ephemeral(outcome.events)
        return {
            "stdout": display("\n".join(lines["stdout"]), self.names, chatter),
            "stderr": display("\n".join(lines["stderr"]), self.names, chatter),
            "error": self._error(outcome.error, chatter),
            "result": self._result(outcome.result),
            "events": events(outcome.events, self.names),
            "files": self.files(stack.name),
        }

    def _diagnostics(self, outcome: Outcome) -> list[str]:
        assert outcome.error is not None
        lines = display(str(outcome.error), self.names, ephemeral(outcome.events))
        return [type(outcome.error).__name__, *lines[lines.index("Diagnostics:") : lines.index("Resources:")]]

    def _result(self, result: Any) -> Any:
        fields = (
            {key: value for key, value in vars(result).items() if key not in ("stdout", "stderr")} if result else {}
        )
        return plain(fields, self.names)

    def _error(self, error: CommandError | None, chatter: Iterable[str] = ()) -> Any:
        return [type(error).__name__, display(str(error), self.names, chatter)] if error else None

    def state_file(self, stack: str) -> Path:
        """Path of the state of a stack."""
        return self.folder / "state" / ".pulumi" / "stacks" / PROJECT / f"{stack}.json"

    def locks(self) -> list[Path]:
        """Return the lock files of all stacks."""
        return list((self.folder / "state" / ".pulumi" / "locks").rglob("*.json"))

    def files(self, stack: str) -> dict[str, Any]:
        """Return the JSON documents of a stack in the state folder: name → content."""
        root = self.folder / "state" / ".pulumi"
        found: dict[str, Any] = {}
        for path in sorted(root.rglob(f"*{stack}*")):
            name = text(str(path.relative_to(root)), self.names)
            if path.is_file():
                found[f"{name} {len(found)}"] = self._content(path)
        return found

    def _content(self, path: Path) -> Any:
        if path.name.endswith((".attrs", ".bak")) or "backups" in path.parts:
            return None
        try:
            return checkpoint(json.loads(path.read_text()), self.names)
        except ValueError:
            return "no JSON"

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Return what kubectl prints for the side's namespace."""
        return kubectl(self.info, "-n", self.namespace, *arguments, stdin=stdin)

    def live(self, key: str) -> dict[str, Any] | None:
        """Return the live object `Kind/name`."""
        return get(self.info, self.namespace, key)

    def plain_run(self, stack: str, *arguments: str, **environment: str) -> CommandResult:
        """Run one command line through the adapter."""
        workspace = self.workspace(stack)
        variables = {**workspace.env_vars, "PULUMI_DEBUG_COMMANDS": "true", **environment}
        return self.command.run([*arguments, "--stack", stack], workspace.work_dir, variables)


@dataclass(frozen=True)
class Sides:
    """Both adapters."""

    stock: Side
    resident: Side

    def equal(self, scenario: Callable[[Side], None]) -> None:
        """Run a scenario on both sides; the records must be equal."""
        for side in (self.stock, self.resident):
            side.records.clear()
            scenario(side)
        stock, resident = self.stock.records, self.resident.records
        assert [what for what, _ in stock] == [what for what, _ in resident]
        assert stock, "nothing was recorded"
        for number, ((what, ours), (_, theirs)) in enumerate(zip(stock, resident, strict=True)):
            delta = difflib.unified_diff(document(ours), document(theirs), "stock", "resident", n=4, lineterm="")
            lines = list(delta)
            assert not lines, "\n".join([f"{what} (record {number}) differs:", *lines])


@contextmanager
def run_sides(info: ClusterInfo, folder: Path) -> Iterator[Sides]:
    """Both adapters on one control plane; the resident engine is stopped at the end."""
    with resident_side(info, folder / "resident") as resident:
        yield Sides(make_side("stock", PulumiCommand(), info, folder / "stock"), resident)


@contextmanager
def resident_side(info: ClusterInfo, folder: Path, **settings: Any) -> Iterator[Side]:
    """Yield a side with an engine of its own, which is stopped at the end and must leave no process and no lock."""
    own = {"engine": str(Toolchain.default().find("reside-engine")), "lifetime": "parent", "folder": folder / "engines"}
    with ResidentCommand(ResidentSettings(**{**own, **settings})) as command:
        side = make_side("resident", command, info, folder)
        yield side
    assert side.locks() == []
    assert processes_of(folder) == []


def processes_of(folder: Path) -> list[str]:
    """Return the command lines of the processes that name a path in the folder: its engines and their providers."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it ended while we looked
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in found if f"{folder}/" in line]


def make_side(name: str, command: PulumiCommand, info: ClusterInfo, folder: Path) -> Side:
    """Return a side with a namespace, a state folder and a home that contains the plugins."""
    side = Side(name, command, folder, new_namespace(info), info)
    (side.folder / "state").mkdir(parents=True)
    links = {side.folder / "bin" / tool: tool for tool in _TOOLS}
    for plugin, version in _PLUGINS.items():
        links[side.folder / "home" / "plugins" / f"resource-{plugin}-v{version}" / f"pulumi-resource-{plugin}"] = (
            f"pulumi-resource-{plugin}"
        )
    for link, tool in links.items():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(Path(Toolchain.default().find(tool)).resolve())
    return side


os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")  # no process here forks without an exec
