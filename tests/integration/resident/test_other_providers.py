"""Equivalence with providers other than Kubernetes, and several of them kept in one engine.

The providers are those of `engine/trialproviders`: `chance` makes secret texts that any change replaces, `shell` runs
commands.
"""

from __future__ import annotations

import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from integration.resident.programs import config_map, kubernetes
from integration.resident.sides import ExistingStack
from pulumi import ResourceOptions
from support.eventually import eventually_sync

from tools.builder.golang import environment

if TYPE_CHECKING:
    from integration.resident.sides import Program, Side, Sides

pytestmark = pytest.mark.timeout(600)  # Go links the providers
_ENGINE = Path(__file__).parents[3] / "engine"
OPTIONS = ResourceOptions(version="1.0.0")


@pytest.fixture(scope="module", autouse=True)
def _installed(sides: Sides, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Build the providers with the packages that the engine was built from, and install them on both sides."""
    binary = tmp_path_factory.mktemp("providers") / "trial"
    command = ["go", "build", "-ldflags", "-s -w", "-o", str(binary), "./trialproviders"]
    subprocess.run(command, cwd=_ENGINE, env=environment(), check=True)
    for side in (sides.stock, sides.resident):
        for name in ("chance", "shell"):
            folder = side.folder / "home" / "plugins" / f"resource-{name}-v1.0.0"
            folder.mkdir(parents=True)
            os.link(binary, folder / f"pulumi-resource-{name}")  # the provider reads its name from that of its file


def text(name: str, options: ResourceOptions = OPTIONS, **inputs: Any) -> Any:
    """Return a resource with a random text as its output `result`."""
    return Texts(name, inputs, options)


class Texts(pulumi.CustomResource):
    """A text of the provider chance."""

    result: pulumi.Output[str]

    def __init__(self, name: str, inputs: dict[str, Any], options: ResourceOptions) -> None:
        super().__init__("chance:index:Text", name, {"result": None, **inputs}, options)


class Run(pulumi.CustomResource):
    """A command of the provider shell."""

    stdout: pulumi.Output[str]

    def __init__(self, name: str, options: ResourceOptions = OPTIONS, **inputs: Any) -> None:
        super().__init__("shell:index:Run", name, {"stdout": None, **inputs}, options)


def both(side: Side, value: str, **inputs: Any) -> Program:
    """Return a program with both providers, in which the command depends on the text."""
    notes = side.folder / "notes"

    def run() -> None:
        provider = pulumi.ProviderResource("chance", "seeded", {"seed": pulumi.Output.secret("s1")}, OPTIONS)
        made = text("token", ResourceOptions(provider=provider, version="1.0.0"), keepers={"value": value})
        text("plain")
        command = made.result.apply(lambda token: f"echo {token} {value} | tee -a {notes}")
        ran = Run("ran", create=command, delete=f"echo gone {value} >> {notes}", **inputs)
        options = pulumi.InvokeOptions(provider=provider)
        said = pulumi.runtime.invoke("chance:index:say", {"text": value}, options).value["result"]
        pulumi.export("said", said)
        pulumi.export("stdout", ran.stdout)
        pulumi.export("token", made.result)

    return run


def providers(side: Side) -> dict[str, int]:
    """Return the kept providers of the resident side: name → process."""
    found = side.engine.status()["providers"]
    return {each["name"]: each["pid"] for each in found if each["state"] == "ready"}


def test_create_update_replace_refresh_and_destroy(sides: Sides) -> None:
    def scenario(side: Side) -> None:
        stack = side.stack("others")
        # One after another, because the rows of a display tell what was first
        assert side.run(stack, "preview", both(side, "one"), parallel=1).changes == {"create": 5}
        assert side.up(stack, both(side, "one"), parallel=1).changes == {"create": 5}
        assert side.up(stack, both(side, "one"), parallel=1).changes == {"same": 5}
        changed = side.up(stack, both(side, "two"), parallel=1, diff=True)
        assert changed.changes == {"same": 3, "replace": 1, "update": 1}
        assert side.up(stack, both(side, "two", triggers=[1]), parallel=1).changes == {"same": 4, "replace": 1}
        side.run(stack, "refresh", parallel=1)
        side.note("outputs", sorted(side.workspace("others").stack_outputs("others")))
        assert side.run(stack, "destroy", parallel=1).error is None
        side.note("commands", (side.folder / "notes").read_text())

    sides.equal(scenario)


def test_failures_of_a_check_and_of_a_command(sides: Sides) -> None:
    def program(length: int, command: str) -> Program:
        def run() -> None:
            first = text("first", length=length)
            Run("second", ResourceOptions(version="1.0.0", depends_on=[first]), create=command)

        return run

    def scenario(side: Side) -> None:
        stack = side.stack("failing")
        refused = side.up(stack, program(99, "true"), parallel=1, racing=True)
        assert "must be between 1 and 64" in str(refused.error)
        failed = side.up(stack, program(9, "echo why >&2; exit 3"), parallel=1)
        assert "exit status 3): why" in str(failed.error)
        assert side.up(stack, program(9, "echo fine"), parallel=1).changes == {"same": 2, "create": 1}
        assert "exit status 4): no" in str(side.up(stack, program(9, "echo no >&2; exit 4"), parallel=1).error)
        assert side.run(stack, "destroy", parallel=1).error is None

    sides.equal(scenario)


def test_a_command_sees_the_environment_of_the_caller_without_its_terminal(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = sides.resident
    monkeypatch.setenv("TERM", "xterm-of-the-first-terminal")
    for value in ("one", "two"):
        monkeypatch.setenv("A_VARIABLE_OF_MINE", value)
        stack = side.stack_of("environment") if value == "two" else side.stack("environment")

        def run(value: str = value) -> None:
            ran = Run("ran", create="echo $A_VARIABLE_OF_MINE ${TERM-no terminal}", triggers=[value])
            pulumi.export("stdout", ran.stdout)

        assert side.up(stack, run).error is None
        assert side.workspace("environment").stack_outputs("environment")["stdout"].value == f"{value} no terminal"


def test_providers_of_three_kinds_are_kept_at_once_and_replaced_alone(sides: Sides) -> None:
    side = sides.resident

    def run() -> None:
        text("token")
        Run("ran", create="echo fine")
        config_map("of-three", {"value": "1"}, ResourceOptions(provider=kubernetes(side)))

    stack = side.stack("three")
    assert side.up(stack, run).error is None
    first = providers(side)
    assert first.keys() >= {"chance", "shell", "kubernetes"}
    assert side.up(stack, run).changes["same"] == 5
    assert providers(side) == first
    os.kill(first["shell"], signal.SIGKILL)
    eventually_sync("the end of the killed provider", lambda: "shell" not in providers(side))
    assert side.up(stack, run).changes["same"] == 5
    second = providers(side)
    assert second["chance"] == first["chance"]
    assert second["shell"] != first["shell"]


def test_stacks_that_use_the_same_providers_at_the_same_time_do_not_mix(sides: Sides) -> None:
    side = sides.resident

    def program(name: str) -> Program:
        def run() -> None:
            provider = pulumi.ProviderResource("chance", "seeded", {"seed": name}, OPTIONS)
            made = text("token", ResourceOptions(provider=provider, version="1.0.0"))
            pulumi.export("stdout", Run("ran", create=made.result.apply(lambda _: f"echo {name}")).stdout)
            pulumi.export(
                "said",
                pulumi.runtime.invoke("chance:index:say", {"text": "!"}, pulumi.InvokeOptions(provider=provider)).value[
                    "result"
                ],
            )

        return run

    names = [f"parallel{number}" for number in range(4)]
    for name in names:
        side.stack(name)
    own = replace(side, records=[])
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(
            pool.map(lambda name: own.operate(ExistingStack(name, own.workspace(name)), "up", program(name)), names)
        )
    assert [outcome.error for outcome, _ in outcomes] == [None] * 4
    for name in names:
        outputs = side.workspace(name).stack_outputs(name)
        assert (outputs["stdout"].value, outputs["said"].value) == (name, f"{name} !")
