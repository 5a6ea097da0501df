"""Port-forwards that can't start; the others are tested in tests/e2e/test_embedded_kubernetes.py with pods."""

from pathlib import Path

import pytest

from reside.access.client import read_kubeconfig
from reside.access.errors import PortForwardError
from reside.access.forward import PortForward
from reside.access.target import Target
from reside.local import ClusterInfo
from reside.local.toolchain import Toolchain

pytestmark = pytest.mark.anyio


async def test_a_service_that_does_not_exist_is_an_error_with_what_kubectl_said(cluster: ClusterInfo) -> None:
    kubectl = Toolchain.default().find("kubectl")
    forward = PortForward(
        cluster.kubeconfig, cluster.context, "default", "svc/nobody", 80, kubectl=kubectl, ready_seconds=8
    )
    with pytest.raises(PortForwardError, match=r'svc/nobody.*services "nobody" not found'):
        await forward.__aenter__()


async def test_a_kubectl_that_can_not_be_run_is_an_error_at_once(cluster: ClusterInfo, tmp_path: Path) -> None:
    broken = tmp_path / "kubectl"
    broken.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises((PortForwardError, OSError)):
        async with PortForward(cluster.kubeconfig, None, "default", "svc/a", 80, kubectl=broken, ready_seconds=2):
            pytest.fail("the forward can't be up")


def test_the_kubeconfig_of_a_local_cluster_is_read(cluster: ClusterInfo) -> None:
    found = read_kubeconfig(Target("default", "direct", str(cluster.kubeconfig), cluster.context, deadline=1))
    assert found.cluster.server == cluster.api_url
