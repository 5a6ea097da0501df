"""The Sentinel talks only to an API server whose certificate its kubeconfig's authority has issued."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest
import yaml

from reside.local.pki import Certificate, certificate_path, ensure
from reside.model.kinds import BY_KIND
from reside.sentinel.errors import ClusterUnavailable
from reside.sentinel.guard.api import connect

if TYPE_CHECKING:
    from pathlib import Path

    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio


async def test_an_api_server_with_a_certificate_of_another_authority_is_refused(
    cluster: ClusterInfo, tmp_path: Path
) -> None:
    kubeconfig = yaml.safe_load(cluster.kubeconfig.read_text())
    other = Certificate("other", "other")
    ensure(tmp_path, [other])
    authority = certificate_path(tmp_path, other.authority).read_bytes()
    kubeconfig["clusters"][0]["cluster"].pop("certificate-authority", None)
    kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(authority).decode()
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig))
    for file, is_trusted in ((cluster.kubeconfig, True), (path, False)):
        async with connect("default", file, cluster.context) as api:
            if is_trusted:
                await api.list_all(BY_KIND["ConfigMap"])
            else:
                with pytest.raises(ClusterUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
                    await api.list_all(BY_KIND["ConfigMap"])
