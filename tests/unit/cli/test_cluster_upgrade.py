"""`reside cluster upgrade`: what is shown before anything changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from reside.cli import config, main, project, upgrading
from reside.cli.config import Cluster, Config, Context
from reside.model.errors import InvalidInput
from reside.seed import settings
from reside.seed.release import Upgrade, changed_images

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("alpha", "kubernetes-sentinel", "seed", "jazz", "etcd")


def image(name: str, letter: str) -> str:
    """Return an image with a digest of this letter."""
    return f"registry.reside.internal/reside/{name}@sha256:{letter * 64}"


def test_images_are_compared_by_digest_wherever_they_are() -> None:
    wanted = {name: image(name, "a") for name in NAMES} | {"jazz": image("jazz", "b")}
    found = settings.parse({"namespace": "reside", "images": wanted}, "test")
    running = {name: image(name, "a").replace("registry.reside.internal", "ghcr.io/acme") for name in NAMES}
    assert changed_images(running, found) == {"jazz": ("sha256:" + "a" * 64, "sha256:" + "b" * 64)}


def test_what_a_half_made_cluster_lacks_is_new() -> None:
    found = settings.parse({"namespace": "reside", "images": {name: image(name, "a") for name in NAMES}}, "test")
    running = {name: image(name, "a") for name in NAMES if name != "alpha"}
    assert changed_images(running, found) == {"alpha": ("", "sha256:" + "a" * 64)}


def test_each_image_is_shown_with_its_effect_and_each_object_with_its_changes() -> None:
    plan = Upgrade({"jazz": ("sha256:" + "a" * 64, "sha256:" + "b" * 64)}, {"StatefulSet/jazz": ["spec.x: 1 → 2"]})
    assert list(upgrading.lines(plan)) == [
        "  jazz: sha256:aaaaaaaaaaaa → sha256:bbbbbbbbbbbb; restarts; what is written meanwhile waits",
        "  StatefulSet/jazz:",
        "    spec.x: 1 → 2",
        "replicas keep running, and all data stays; `reside cluster backup FILE` saves it before",
    ]
    assert not plan.is_empty
    assert Upgrade({}, {}).is_empty


def test_the_current_context_of_the_cluster_is_used_and_a_missing_one_is_told() -> None:
    clusters = tuple(Cluster(name=name, namespace="reside", alpha_replica_id="co_zA") for name in ("east", "west"))
    contexts = tuple(Context(name=name, cluster="east", account=name) for name in ("ada", "bob"))
    found = Config(clusters=clusters, contexts=contexts, current_context="bob")
    assert upgrading.context_of(found, "east") == "bob"
    assert upgrading.context_of(found.model_copy(update={"current_context": None}), "east") == "ada"
    with pytest.raises(InvalidInput, match="no context of the configuration has cluster west: get one with"):
        upgrading.context_of(found, "west")


def row(*digests: str, current: int) -> dict[str, Any]:
    """Return Alpha as `ReplicaView` shows it, with a version for each digest."""
    return {
        "name": "alpha",
        "version": current,
        "versions": [{"id": n, "digest": digest} for n, digest in enumerate(digests, 1)],
    }


def test_a_downgrade_is_refused() -> None:
    plan = Upgrade({"jazz": ("sha256:x", "sha256:y"), "alpha": ("sha256:b", "sha256:a")}, {})
    with pytest.raises(InvalidInput, match=r"was upgraded from these images of alpha before.*use --downgrade"):
        upgrading.check_newer(plan, [row("sha256:a", "sha256:b", current=2)])


def test_images_that_never_ran_or_are_later_are_no_downgrade() -> None:
    plan = Upgrade({"alpha": ("sha256:b", "sha256:c")}, {})
    upgrading.check_newer(plan, [row("sha256:a", "sha256:b", current=2)])
    upgrading.check_newer(plan, [row("sha256:a", "sha256:b", "sha256:c", current=2)])
    upgrading.check_newer(Upgrade({}, {"StatefulSet/jazz": ["spec.x: 1 → 2"]}), [row("sha256:a", current=1)])


def test_a_downgrade_is_made_if_it_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "images.json").write_text(json.dumps({name: image(name, "a") for name in NAMES}))
    east = Cluster(name="east", namespace="reside", alpha_replica_id="co_zA")
    monkeypatch.setattr(config, "load", lambda: Config(clusters=(east,)))
    done: list[str] = []

    async def plan(_config: Config, cluster: Cluster, images: dict[str, str]) -> tuple[Any, Upgrade, list[Any]]:
        assert images["jazz"] == image("jazz", "a")
        rows = [row("sha256:a", "sha256:b", current=2)]
        return cluster.name, Upgrade({"alpha": ("sha256:b", "sha256:a")}, {}), rows

    monkeypatch.setattr(upgrading, "_plan", plan)
    monkeypatch.setattr(project, "up", lambda settings, name, _report: done.append(f"{settings} {name}"))
    where = ["--cluster", "east", "--images", str(tmp_path / "images.json")]
    assert main.run(["cluster", "upgrade", *where, "--yes", "--output", "json"]) == 1
    assert done == []
    assert "use --downgrade" in capsys.readouterr().err
    assert main.run(["cluster", "upgrade", *where, "--yes", "--downgrade", "--output", "json"]) == 0
    assert done == ["east east"]
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["event"] for each in events] == ["plan", "result"]
    assert events[-1]["changed"] is True
