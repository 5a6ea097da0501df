"""What `reside cluster prune` shows before it asks."""

from __future__ import annotations

from typer.main import get_command

from reside.cli.main import command
from reside.cli.pruning import HeldObjects


def test_objects_and_reasons_are_shown() -> None:
    objects = [{"object": "PersistentVolumeClaim/data", "uid": "u1"}, {"object": "ConfigMap/a", "uid": "u2"}]
    found = HeldObjects.parse({"objects": objects, "reasons": ["it has data"]})
    assert list(found.lines()) == [
        "these objects carry the Sentinel's label and are in no stack:",
        "  PersistentVolumeClaim/data",
        "  ConfigMap/a",
        "held: it has data",
    ]
    assert sorted(found.uids.values()) == ["u1", "u2"]


def test_a_sentinel_that_never_held_anything_holds_nothing() -> None:
    assert HeldObjects.parse({}).uids == {}


def test_the_command_is_part_of_cluster() -> None:
    cluster = get_command(command(["cluster"])).commands["cluster"]  # type: ignore[attr-defined] # it is a group
    assert "prune" in cluster.commands
