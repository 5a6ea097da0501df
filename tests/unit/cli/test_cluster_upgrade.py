"""`reside cluster upgrade`: what is shown before anything changes."""

from __future__ import annotations

from reside.cli import upgrading
from reside.seed import settings
from reside.seed.release import Upgrade, changed_images

NAMES = ("alpha", "kubernetes-sentinel", "seed", "jazz", "etcd")


def image(name: str, letter: str) -> str:
    """Return an image with a digest of this letter."""
    return f"registry.reside.internal/reside/{name}@sha256:{letter * 64}"


def test_images_are_compared_by_digest_wherever_they_are() -> None:
    wanted = {name: image(name, "a") for name in NAMES} | {"jazz": image("jazz", "b")}
    found = settings.parse({"namespace": "reside", "images": wanted}, "test")
    running = {name: image(name, "a").replace("registry.reside.internal", "ghcr.io/acme") for name in NAMES}
    assert changed_images(running, found) == {"jazz": ("sha256:" + "a" * 64, "sha256:" + "b" * 64)}


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
