"""`make up` on an existing cluster: its name, and what it needs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from reside.cli import up
from reside.cli.cluster_options import ClusterOptions
from reside.model.errors import InvalidInput

CHECKOUT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("context", "namespace", "name"),
    [
        ("kind-dev", "reside", "kind-dev"),
        ("kind-dev", "team", "kind-dev-team"),
        ("arn:aws:eks:eu-west-1:42:cluster/dev", "reside", "arn-aws-eks-eu-west-1-42-cluster-dev"),
    ],
)
def test_a_cluster_is_named_after_its_context_and_namespace(context: str, namespace: str, name: str) -> None:
    assert up.elsewhere(context, namespace) == name


def test_a_context_without_a_repository_is_refused_with_the_cure() -> None:
    with pytest.raises(InvalidInput, match=r"KUBE_CONTEXT=kind needs a repository .*: add IMAGE_REPOSITORY=HOST/PATH"):
        up.up_elsewhere("kind", ClusterOptions())


def test_a_context_that_is_not_in_the_kubeconfig_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text("clusters: []\nusers: []\ncontexts: []\n")
    options = ClusterOptions(kubeconfig=tmp_path / "kubeconfig", image_repository="ghcr.io/acme/reside")
    with pytest.raises(InvalidInput, match=r"context 'kind' is not in kubeconfig .* \(known: none\)"):
        up.up_elsewhere("kind", options)


def test_make_refuses_a_context_without_a_repository_before_it_builds_the_toolchain() -> None:
    done = subprocess.run(
        ["make", "--no-print-directory", "--assume-old=.venv/.synced", "up", "KUBE_CONTEXT=kind", "IMAGE_REPOSITORY="],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "KUBE_CONTEXT needs IMAGE_REPOSITORY=HOST/PATH" in done.stderr
    assert done.stdout == ""
