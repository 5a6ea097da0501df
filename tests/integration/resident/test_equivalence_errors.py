"""Stock and resident engine fail equally: with the same class, text and remaining state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pulumi
from integration.resident.programs import config_map, kubernetes
from pulumi import ResourceOptions
from pulumi.automation.errors import ConcurrentUpdateError, InlineSourceRuntimeError

if TYPE_CHECKING:
    from integration.resident.sides import Program, Side, Sides

PACK = Path(__file__).parents[3] / "policy"


def maps(side: Side, **data: str) -> Program:
    """Return a program of ConfigMaps, each with one value."""

    def run() -> None:
        use = ResourceOptions(provider=kubernetes(side))
        for name, value in data.items():
            config_map(name, {"value": value}, use)

    return run


def test_errors_of_program_provider_and_other_field_managers(sides: Sides) -> None:
    def broken(side: Side) -> Program:
        def run() -> None:
            maps(side, kept="1")()
            raise ValueError("the program has a bug")

        return run

    def scenario(side: Side) -> None:
        stack = side.stack("failures")
        failed = side.up(stack, broken(side))
        assert isinstance(failed.error, InlineSourceRuntimeError)
        assert "the program has a bug" in str(failed.error)
        rejected = side.up(stack, maps(side, kept="1", Not_A_Name="1"))
        assert "Invalid value" in str(rejected.error)
        assert side.up(stack, maps(side, kept="1")).error is None
        theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"value": "theirs"}}
        command = ["apply", "--server-side", "--force-conflicts", "--field-manager", "other", "-f", "-"]
        side.kubectl(*command, stdin=json.dumps(theirs))
        conflict = side.up(stack, maps(side, kept="2"))
        assert "conflict with" in str(conflict.error)
        assert side.up(stack, maps(side, kept="theirs")).changes == {"same": 2, "update": 1}
        assert side.run(stack, "preview", maps(side, kept="3"), expect_no_changes=True).error
        assert side.run(stack, "destroy").error is None

    sides.equal(scenario)


def test_policies_missing_plugins_and_held_locks(sides: Sides) -> None:
    def unknown() -> None:
        pulumi.CustomResource("nobody:index:Thing", "thing", {}, ResourceOptions(version="1.2.3"))

    def scenario(side: Side) -> None:
        stack = side.stack("refused")
        policy = side.run(stack, "preview", maps(side, unlabelled="1"), policy_packs=[str(PACK)])
        assert "managed-by-label" in str(policy.error)
        missing = side.up(stack, unknown, racing=True)
        assert "nobody" in str(missing.error)
        lock = side.hold_lock("refused")
        held = side.up(stack, maps(side, never="1"))
        assert isinstance(held.error, ConcurrentUpdateError)
        assert side.locks() == [lock]
        assert side.run(stack, "preview", maps(side, never="1")).error is None, "a preview takes no lock"
        stack.cancel()
        assert side.locks() == []
        assert side.live("ConfigMap/never") is None
        assert side.up(stack, lambda: None).error is None

    sides.equal(scenario)


def test_broken_states(sides: Sides) -> None:
    def alone() -> None:
        pulumi.ComponentResource("test:index:Alone", "alone", None)

    def scenario(side: Side) -> None:
        stack = side.stack("broken")
        assert side.up(stack, alone).error is None
        file = side.state_file("broken")
        good = file.read_text()
        state = json.loads(good)
        (child,) = [r for r in state["checkpoint"]["latest"]["resources"] if r["type"] == "test:index:Alone"]
        child["parent"] += "-that-is-not-there"
        for bad in (json.dumps(state), good[: len(good) // 2]):
            file.write_text(bad)
            assert side.up(stack, alone).error
            assert side.locks() == []
        file.write_text(good)
        assert side.up(stack, alone).changes == {"same": 2}

    sides.equal(scenario)
