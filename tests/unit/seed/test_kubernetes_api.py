"""How the seed treats responses of the Kubernetes API."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from reside.access.client import connect
from reside.access.objects import read_secret
from reside.access.target import Target
from reside.model.errors import NotReady
from reside.seed.kubernetes import has_ready_pod

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.anyio


@contextmanager
def api(folder: Path, status: int, kind: str, body: str) -> Iterator[Target]:
    """Yield an API server that gives this response to every GET; and how to reach it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_arguments: Any) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        config = {
            "current-context": "here",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {}}],
        }
        file = folder / "kubeconfig"
        file.write_text(yaml.safe_dump(config))
        try:
            yield Target("reside", "direct", str(file), None, 1.0)
        finally:
            server.shutdown()
            thread.join()


def pods(**metadata: Any) -> str:
    """Return a list of one ready pod."""
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    item = {"metadata": {"name": "alpha-1", **metadata}, "status": ready}
    return json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [item]})


async def test_the_page_of_a_proxy_counts_as_an_unreachable_api(tmp_path: Path) -> None:
    with (
        api(tmp_path, 502, "text/html", "<html>Bad Gateway</html>") as target,
        pytest.raises(NotReady, match=r"can't be reached: .*502"),
    ):
        async with connect(target) as client:
            await read_secret(client, "alpha")


@pytest.mark.parametrize(("metadata", "ready"), [({}, True), ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, False)])
async def test_a_terminating_pod_is_not_ready(tmp_path: Path, metadata: dict[str, Any], ready: bool) -> None:
    with api(tmp_path, 200, "application/json", pods(**metadata)) as target:
        async with connect(target) as client:
            assert await has_ready_pod(client, "alpha") is ready
