"""Build the probe (a small Go program) and push it to a local cluster's registry."""

import subprocess
from pathlib import Path

import httpx2

from reside.local import REGISTRY_HOST, ClusterInfo
from reside.local.images import MANIFEST_TYPE, BinaryImage, build
from tools.builder.golang import environment

_SOURCE = Path(__file__).parent / "probe"


def push_probe(info: ClusterInfo, folder: Path) -> str:
    """Build and push the probe; return the reference for a pod."""
    binary = folder / "probe"
    subprocess.run(
        ["go", "build", "-ldflags", "-s -w", "-o", binary, "."],
        cwd=_SOURCE,
        env=environment(),
        check=True,
        timeout=300,
    )
    built = build(BinaryImage("probe", binary))
    with httpx2.Client(base_url=f"http://{info.registry_loopback}/v2/probe", timeout=60) as registry:
        for digest, blob in built.blobs.items():
            upload = registry.post("/blobs/uploads/").raise_for_status().headers["Location"]
            url = httpx2.URL(f"http://{info.registry_loopback}").join(upload)
            registry.put(url.copy_merge_params({"digest": digest}), content=blob).raise_for_status()
        headers = {"Content-Type": MANIFEST_TYPE}
        registry.put("/manifests/1", content=built.manifest, headers=headers).raise_for_status()
    return f"{REGISTRY_HOST}/probe:1"
