"""`seed.example.yaml` in the repository's root is what `reside cluster manifest` prints, with example digests."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from reside.seed import rendering, settings

EXAMPLE = Path(__file__).resolve().parents[3] / "seed.example.yaml"
DIGEST = "sha256:" + "0" * 64
HOST = "registry.reside.internal/reside"
SETTINGS = settings.parse(
    {
        "namespace": "reside",
        "image_repository": "ghcr.io/acme/reside",
        "network_policies": "ingress",
        "images": {
            name: f"{HOST}/{name}@{DIGEST}" for name in ("alpha", "kubernetes-sentinel", "seed", "jazz", "etcd")
        },
    },
    "test",
)


def test_the_example_is_what_the_command_prints() -> None:
    comment, _, objects = EXAMPLE.read_text().partition("\n\n")
    assert all(line.startswith("#") for line in comment.splitlines())
    assert objects == rendering.render(SETTINGS)


def test_the_example_has_the_two_placeholders_and_no_other() -> None:
    assert set(re.findall(r"\$\{(\w+)\}", EXAMPLE.read_text())) == {
        rendering.DOMAIN_VARIABLE,
        rendering.ISSUER_VARIABLE,
    }
    assert [each["kind"] for each in yaml.safe_load_all(EXAMPLE.read_text())][-1] == "Job"
