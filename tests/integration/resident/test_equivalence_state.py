"""Stock and resident engine store secrets, state and history equally, and return them equally."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pulumi
import pytest
from integration.resident.programs import Pair, config_map, kubernetes, secret
from integration.resident.sides import PASSPHRASE
from pulumi import ResourceOptions
from pulumi.automation import ConfigValue, Deployment, Stack
from pulumi.automation.errors import StackAlreadyExistsError, StackNotFoundError
from support.resident_record import decrypted, deployment, plain

if TYPE_CHECKING:
    from integration.resident.sides import Program, Side, Sides

HIDDEN = "a-word-that-nobody-may-read"


def test_secrets_of_config_outputs_and_resources(sides: Sides) -> None:
    def program(side: Side) -> Program:
        def run() -> None:
            config = pulumi.Config()
            use = ResourceOptions(provider=kubernetes(side))
            hidden = config.require_secret("hidden")
            secret("secret", {"key": hidden}, use)
            config_map("with-secret", {"key": hidden, "plain": config.require("plain")}, use)
            pulumi.export("hidden", hidden)
            pulumi.export("nested", {"plain": "open", "hidden": hidden})
            pulumi.export("plain", config.get("plain"))

        return run

    def scenario(side: Side) -> None:
        stack = side.stack("secrets", Stack)
        stack.set_all_config({"plain": ConfigValue("open"), "hidden": ConfigValue(HIDDEN, secret=True)})
        done = side.up(stack, program(side))
        assert done.error is None
        assert {key: value.secret for key, value in done.result.outputs.items()} == {
            "hidden": True,
            "nested": False,
            "plain": False,
        }
        assert done.result.outputs["hidden"].value == HIDDEN
        assert HIDDEN not in done.result.stdout + done.result.stderr + repr(done.events)
        side.note("history", plain(stack.history(), side.names))
        side.note("history without secrets", plain(stack.history(show_secrets=False), side.names))
        side.note("shown outputs", side.plain_run("secrets", "stack", "output", "--json", "--show-secrets").stdout)
        side.note("masked outputs", side.plain_run("secrets", "stack", "output", "--json").stdout)
        side.note("exported", deployment(stack.export_stack().deployment, side.names))
        state = side.state_file("secrets").read_text()
        assert HIDDEN not in state
        found = decrypted(json.loads(state)["checkpoint"]["latest"], PASSPHRASE)
        assert json.dumps(HIDDEN) in found
        side.note("decrypted", found)
        wrong = side.stack_of("secrets", PULUMI_CONFIG_PASSPHRASE="another")
        refused = side.up(wrong, program(side))
        assert "incorrect passphrase" in str(refused.error)
        assert side.up(side.stack_of("secrets"), program(side)).changes == {"same": 4}

    sides.equal(scenario)


def test_stacks_are_created_read_moved_and_removed(sides: Sides) -> None:
    def program(value: str) -> Program:
        def run() -> None:
            pulumi.ComponentResource("test:index:Alone", "alone", None)
            pulumi.export("value", value)

        return run

    def scenario(side: Side) -> None:
        stack = side.stack("moved", Stack)
        with pytest.raises(StackAlreadyExistsError) as exists:
            side.stack("moved")
        side.fails("made twice", exists.value)
        with pytest.raises(StackNotFoundError) as missing:
            Stack.select("nowhere", side.workspace("nowhere"))
        side.fails("not there", missing.value)
        assert stack.history() == []
        for value in ("one", "two"):
            assert side.up(stack, program(value)).error is None
        side.note("a page of the history", plain(stack.history(page_size=1, page=2), side.names))
        side.refused("removed too early", lambda: stack.workspace.remove_stack("moved"))
        stack.cancel()
        state = stack.export_stack()
        resources = [r for r in state.deployment["resources"] if r["type"] != "test:index:Alone"]
        stack.import_stack(Deployment(3, {**state.deployment, "resources": resources}))
        side.note("imported", side.files("moved"))
        assert side.run(stack, "preview", program("two")).changes == {"create": 1, "same": 1}
        assert side.run(stack, "destroy", remove=True).changes == {"delete": 1}
        assert not side.state_file("moved").exists()
        side.note("removed", side.files("moved"))
        assert side.locks() == []

    sides.equal(scenario)


@pytest.mark.parametrize("turns", [12, pytest.param(50, marks=pytest.mark.soak)])
def test_operations_of_both_alternate_on_one_stack(sides: Sides, turns: int) -> None:
    """Each engine accepts the state of the other: nothing to change, a whole state, and the same keys."""
    name, first, second = f"alternating-{turns}", sides.stock, sides.resident.at(sides.stock)

    def program(value: int) -> Program:
        def run() -> None:
            use = ResourceOptions(provider=kubernetes(first))
            secret(name, {"key": pulumi.Output.secret(HIDDEN)}, use)
            config_map(name, {"value": str(value)}, use)
            Pair(name, "same", ResourceOptions(providers={"kubernetes": use.provider}))
            pulumi.export("hidden", pulumi.Output.secret(HIDDEN))

        return run

    first.stack(name)
    stacks = [(side, side.stack_of(name)) for side in (first, second)]
    for turn in range(turns):
        side, stack = stacks[turn % 2]
        value = turn // 2  # each value is applied by one and found by the other
        expected = {"create": 7} if turn == 0 else {"same": 7} if turn % 2 else {"same": 6, "update": 1}
        assert side.up(stack, program(value)).changes == expected, turn
        assert first.locks() == []
    state = json.loads(first.state_file(name).read_text())["checkpoint"]["latest"]
    assert len(decrypted(state, PASSPHRASE)) == 4
    exports = [stack.export_stack().deployment for _, stack in stacks]
    assert exports[0] == exports[1]
    assert second.run(stacks[1][1], "destroy").changes == {"delete": 7}
