"""Stock and resident engine change stacks equally: results, texts, events, state files and histories are equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi
from integration.resident.programs import Pair, config_map, dynamic, kubernetes, secret
from pulumi import ResourceOptions
from pulumi.runtime.settings import get_engine
from support.resident_record import display

if TYPE_CHECKING:
    from integration.resident.sides import Program, Side, Sides


def test_create_preview_update_replace_delete_refresh_and_destroy(sides: Sides) -> None:
    def program(side: Side, value: str, *, last: bool = False) -> Program:
        def run() -> None:
            use = ResourceOptions(provider=kubernetes(side))
            first = config_map("first", {"value": value}, use)
            after = ResourceOptions(provider=use.provider, depends_on=[first])
            if not last:
                config_map("second", {"value": "same"}, after)
            Pair("pair", value, ResourceOptions(providers={"kubernetes": use.provider}))
            auto = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": value}}
            again = ResourceOptions(provider=use.provider, version="4.25.0", replace_on_changes=["data"])
            pulumi.CustomResource("kubernetes:core/v1:ConfigMap", "named-by-pulumi", auto, again)
            secret("hidden", {"key": pulumi.Output.secret("a-hidden-value")}, use)
            pulumi.export("first", first.id)
            pulumi.export("hidden", pulumi.Output.secret({"value": "hidden"}))
            pulumi.export("list", [1, 2.5, None, {"value": value}])

        return run

    def scenario(side: Side) -> None:
        stack = side.stack("changes")
        preview = side.run(stack, "preview", program(side, "one"))
        assert preview.changes == {"create": 9}
        assert side.live("ConfigMap/first") is None
        created = side.up(stack, program(side, "one"), message="the first one")
        assert created.changes == {"create": 9}
        assert side.live("ConfigMap/pair-second")
        same = side.up(stack, program(side, "one"), expect_no_changes=True)
        assert same.changes == {"same": 9}
        changed = side.up(stack, program(side, "two", last=True), diff=True, parallel=1)
        assert changed.changes == {"same": 4, "update": 3, "replace": 1, "delete": 1}
        assert "a-hidden-value" not in changed.result.stdout
        side.kubectl("delete", "configmap", "first")
        # One after another: if a child is refreshed before the stack, Pulumi's display shows no outputs of the stack.
        side.run(stack, "refresh", parallel=1)
        side.run(stack, "preview_destroy")
        side.run(stack, "destroy")
        assert side.live("ConfigMap/pair-second") is None

    sides.equal(scenario)


def test_without_a_listener_only_debug_messages_are_missing(sides: Sides) -> None:
    def scenario(side: Side) -> None:
        clients: list[str] = []

        def run() -> None:
            clients.append(type(get_engine()).__name__)
            config_map("only", {"value": "one"}, ResourceOptions(provider=kubernetes(side)))
            pulumi.log.warn("mind the step")

        stack = side.stack("unheard")
        shown = [stack.up(program=run, debug=debug).stdout for debug in (False, True)]
        side.note("files", side.files("unheard"))
        side.note("stdout", display(shown[0], side.names))
        assert ["mind the step" in text for text in shown] == [True, True]
        assert ["debug:" in text for text in shown] == [False, True]
        assert clients == ["EngineStub" if side is sides.stock else "WithoutDebug", "EngineStub"]

    sides.equal(scenario)


def test_protect_retain_ignore_alias_import_and_targets(sides: Sides) -> None:
    def program(side: Side, step: int) -> Program:
        def run() -> None:
            provider = kubernetes(side)

            def use(**options: object) -> ResourceOptions:
                return ResourceOptions(provider=provider, **options)  # type: ignore[arg-type] # mixed by nature

            value = {"value": str(step)}
            if step < 3:
                config_map("protected", {"value": "1"}, use(protect=True))
            if step < 2:
                config_map("retained", {"value": "1"}, use(retain_on_delete=True))
                config_map("old", {"value": "1"}, use(), object_name="aliased")
            else:
                config_map("new", {"value": "1"}, use(aliases=[pulumi.Alias(name="old")]), object_name="aliased")
            config_map("ignoring", value, use(ignore_changes=["data"]))
            found = {} if step > 1 else {"import_": f"{side.namespace}/imported"}
            config_map("imported", {"value": "1" if step == 1 else "2"}, use(**found))
            config_map("other", value, use())

        return run

    def scenario(side: Side) -> None:
        side.kubectl("create", "configmap", "imported", "--from-literal=value=1")
        stack = side.stack("options")
        assert side.up(stack, program(side, 1)).changes == {"create": 7, "import": 1, "update": 1}
        second = side.up(stack, program(side, 2), target=["urn:pulumi:options::equal::**::other"])
        assert second.changes == {"update": 1, "same": 7}
        third = side.up(stack, program(side, 2))
        assert third.error is None
        assert side.live("ConfigMap/retained")
        assert side.up(stack, program(side, 3)).error
        assert side.live("ConfigMap/protected")
        assert side.run(stack, "destroy").error
        assert side.run(stack, "destroy", exclude_protected=True).error is None
        assert side.live("ConfigMap/protected")

    sides.equal(scenario)


def test_dynamic_resources_are_created_updated_replaced_and_fail(sides: Sides) -> None:
    def program(key: str, value: str) -> Program:
        def run() -> None:
            pulumi.export("made", dynamic("thing", key=key, value=value).made)

        return run

    def scenario(side: Side) -> None:
        stack = side.stack("dynamic")
        assert side.up(stack, program("a", "one")).changes == {"create": 2}
        assert side.up(stack, program("a", "two")).changes == {"same": 1, "update": 1}
        assert side.up(stack, program("b", "two")).changes == {"same": 1, "replace": 1}
        refused = side.up(stack, program("b", "refused"))
        assert refused.error
        assert "the provider refuses this value" in str(refused.error)
        assert side.run(stack, "destroy", run_program=False).changes == {"delete": 2}

    sides.equal(scenario)
