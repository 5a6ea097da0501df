"""The first part of the engine's benchmark: one stack of five objects, one operation at a time, in four ways."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulumi.automation import LocalWorkspace, PulumiCommand, Stack, UpdateSummary
from pulumi.automation._stack import StackInitMode

from benchmarks.engine_cluster import WAYS, Kubectl, Ledger, objects
from benchmarks.sdk_program import sdk_program
from reside.local.toolchain import Toolchain
from reside.resident import ResidentCommand, ResidentSettings
from reside.sentinel.engine import EngineSettings, PulumiEngine, StackSpec
from reside.sentinel.engine.resources import ProviderSettings

if TYPE_CHECKING:
    from pulumi.automation import PulumiFn

    from benchmarks.engine_pair import Pair
    from reside.local import ClusterInfo

_PROVIDER = "pulumi-resource-kubernetes"
_VERSION = "4.25.0"


class _OneRun(Stack):
    """A stack whose operations run one command each; `up` would run three more to read outputs and history."""

    def outputs(self) -> dict[str, Any]:
        return {}

    def info(self, show_secrets: bool = True) -> UpdateSummary:  # noqa: ARG002 - the signature of Stack
        return UpdateSummary("update", datetime.fromtimestamp(0, UTC), "", {}, {}, "not read")


def measure_single(info: ClusterInfo, folder: Path, rounds: int, pair: Pair, ledger: Ledger) -> None:
    """Run all operations in all ways; in each round, every operation runs in each way before the next operation."""
    kubectl = Kubectl(info)
    for namespace in WAYS:
        kubectl.run("create", "namespace", namespace)
    settings = ResidentSettings(lifetime="parent", folder=folder / "resident-engine")
    with ResidentCommand(settings) as resident, asyncio.Runner() as runner:
        engine = PulumiEngine(EngineSettings(folder / "sentinel", "bench", "sentinel", info.kubeconfig, info.context))
        ways = (
            _Automation("stock", PulumiCommand(), info, folder),
            _Automation("resident", resident, info, folder),
            _Sentinel(engine, runner),
            _Kubectl(kubectl),
        )
        try:
            _rounds(ways, rounds, ledger, pair)
        finally:
            runner.run(engine.stop())


def _rounds(ways: tuple[Any, ...], rounds: int, ledger: Ledger, pair: Pair) -> None:
    clock = ledger.clock(pair)
    for number in range(rounds + 1):
        book = clock if number else replace(ledger, runs=Ledger().runs).clock(pair)  # the first round warms up
        for operation, act in _OPERATIONS:
            for way in ways:
                step = getattr(way, act)
                with book(operation, way.name):
                    step(number)
        for way in ways[:2]:
            with book("Stack.up(), with outputs and history", way.name):
                way.whole(number)
        for way in ways:
            with book("destroy", way.name):
                way.destroy()


_OPERATIONS = (
    ("create", "create"),
    ("nothing changed", "create"),
    ("preview of one change", "preview"),
    ("one of five changed", "change"),
)


class _Automation:
    """The Automation API with one of the two commands."""

    def __init__(self, name: str, command: PulumiCommand, info: ClusterInfo, folder: Path) -> None:
        self.name = name
        home = folder / name / "home"
        plugin = home / "plugins" / f"resource-kubernetes-v{_VERSION}" / _PROVIDER
        plugin.parent.mkdir(parents=True)
        plugin.symlink_to(Toolchain.default().find(_PROVIDER))
        work = folder / name / "work"
        for made in (work, folder / name / "state"):
            made.mkdir()
        (work / "Pulumi.yaml").write_text("name: bench\nruntime: python\n", encoding="utf-8")
        path = [part for part in os.environ["PATH"].split(os.pathsep) if not (Path(part) / _PROVIDER).exists()]
        tools = folder / name / "bin"
        tools.mkdir()
        for tool in ("pulumi", "pulumi-language-python", "reside-engine", "reside-plugin-guard"):
            (tools / tool).symlink_to(Toolchain.default().find(tool))
        environment = {
            "PATH": os.pathsep.join([str(tools), *path]),
            "KUBECONFIG": str(info.kubeconfig),
            "PULUMI_HOME": str(home),
            "PULUMI_BACKEND_URL": f"file://{folder / name / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE": "bench",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        }
        workspace = LocalWorkspace(work_dir=str(work), pulumi_command=command, env_vars=environment)
        self._stack = _OneRun("bench", workspace, StackInitMode.CREATE)
        self._whole = Stack.select("bench", workspace)
        self._settings = ProviderSettings(_VERSION, name, info.context)

    def create(self, number: int) -> None:
        """Create the objects, or leave them unchanged."""
        self._stack.up(program=self._program(f"{number}"))

    def change(self, number: int) -> None:
        """Change one of them."""
        self._stack.up(program=self._program(f"{number}-changed"))

    def preview(self, number: int) -> None:
        """Preview the change of one of them."""
        self._stack.preview(program=self._program(f"{number}-changed"))

    def whole(self, number: int) -> None:
        """Change one of them, and read outputs and history, as the Automation API does."""
        self._whole.up(program=self._program(f"{number}-again"))

    def destroy(self) -> None:
        """Delete all objects."""
        self._stack.destroy()

    def _program(self, value: str) -> PulumiFn:
        return sdk_program(objects(0, value), self._settings)


class _Sentinel:
    """The Sentinel's engine port."""

    name = "sentinel"

    def __init__(self, engine: PulumiEngine, runner: asyncio.Runner) -> None:
        self._engine = engine
        self._runner = runner

    def create(self, number: int) -> None:
        """Create the objects, or leave them unchanged."""
        self._runner.run(self._engine.apply(StackSpec("bench", objects(0, f"{number}"))))

    def change(self, number: int) -> None:
        """Change one of them."""
        self._runner.run(self._engine.apply(StackSpec("bench", objects(0, f"{number}-changed"))))

    def preview(self, number: int) -> None:
        """Preview the change of one of them."""
        self._runner.run(self._engine.preview(StackSpec("bench", objects(0, f"{number}-changed"))))

    def destroy(self) -> None:
        """Delete all objects."""
        self._runner.run(self._engine.destroy("bench"))


class _Kubectl:
    """kubectl with the same five objects."""

    name = "kubectl"

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl

    def create(self, number: int) -> None:
        """Create the objects, or leave them unchanged."""
        self._kubectl.apply("kubectl", list(objects(0, f"{number}")))

    def change(self, number: int) -> None:
        """Change one of them."""
        self._kubectl.apply("kubectl", list(objects(0, f"{number}-changed")))

    def preview(self, number: int) -> None:
        """Preview the change of one of them, by the dry run that `kubectl diff` makes."""
        items = list(objects(0, f"{number}-changed"))
        self._kubectl.apply("kubectl", items, "--dry-run=server")

    def destroy(self) -> None:
        """Delete all objects."""
        self._kubectl.delete("kubectl", list(objects(0, "")))
