"""Logs of pods are read over HTTP: which lines, from when, and what is said if one can't be read."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml

from reside.access.client import connect
from reside.access.logs import SIZE, Component, read_logs
from reside.access.target import Target
from reside.model.errors import ResideError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from reside.model.pod_logs import PodLog

pytestmark = pytest.mark.anyio

ALPHA = Component({"reside.io/replica": "alpha"}, "replica")
STAMPED = b"2026-01-02T03:04:05.5Z first\n2026-01-02T03:04:06Z second\n"


class Api:
    """A Kubernetes API with pods and their logs; a number in place of a log is the status of a refusal."""

    def __init__(self, logs: Mapping[str, bytes | int]) -> None:
        self.logs = logs
        self.asked: list[dict[str, str]] = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            """Answers."""

            def do_GET(self) -> None:
                """Answer a list of pods or a log."""
                url = urlsplit(self.path)
                query = dict(parse_qsl(url.query))
                if url.path.endswith("/log"):
                    api.asked.append(query)
                    found = api.logs[url.path.split("/")[-2]]
                else:
                    assert query["labelSelector"] == "reside.io/replica=alpha"
                    found = json.dumps(api.pods()).encode()
                status = found if isinstance(found, int) else 200
                body = found if isinstance(found, bytes) else json.dumps(_refusal(status)).encode()
                self.send_response(status)
                self.send_header(
                    "Content-Type", "text/plain" if found is body and url.path.endswith("/log") else "application/json"
                )
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def pods(self) -> dict[str, Any]:
        """Return the list of pods, the first one last."""
        items = [
            {"metadata": {"name": name, "creationTimestamp": f"2026-01-{number:02}T00:00:00Z"}, "status": {}}
            for number, name in enumerate(self.logs, 1)
        ]
        return {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": items[::-1]}


def _refusal(status: int) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": status, "message": "it is waiting"}


@pytest.fixture
def api() -> Iterator[Api]:
    """Yield an API."""
    made = Api({})
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


async def read(api: Api, folder: Path, since: Mapping[str, str] | None = None) -> list[PodLog]:
    server = f"http://127.0.0.1:{api.server.server_port}"
    kubeconfig = {
        "clusters": [{"name": "a", "cluster": {"server": server}}],
        "users": [{"name": "a", "user": {}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    }
    (folder / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    async with connect(Target("reside", "port-forward", str(folder / "kubeconfig"), None, 10.0)) as client:
        return await read_logs(client, [ALPHA], since, 7)


async def test_the_last_lines_of_each_pod_are_read_the_first_pod_first(api: Api, tmp_path: Path) -> None:
    api.logs = {"a": b"one\n", "b": b"x" * SIZE + b"\ntwo\n"}
    found = await read(api, tmp_path)
    assert [(log.pod, log.text, log.is_cut, log.cursor) for log in found] == [
        ("a", "one\n", False, None),
        ("b", "two\n", True, None),
    ]
    assert api.asked == [{"container": "replica", "tailLines": "7"}] * 2


async def test_a_follower_gets_what_is_new(api: Api, tmp_path: Path) -> None:
    api.logs = {"a": STAMPED, "b": STAMPED}
    found = await read(api, tmp_path, {"a": "1767323045500000000/1"})
    assert [(log.text, log.cursor) for log in found] == [
        ("second\n", "1767323046000000000/1"),
        ("first\nsecond\n", "1767323046000000000/1"),
    ]
    assert {query.get("sinceTime") for query in api.asked} == {"2026-01-02T03:04:05Z", None}
    assert all(query["timestamps"] == "true" for query in api.asked)


async def test_a_log_that_can_not_be_read_hides_no_other(api: Api, tmp_path: Path) -> None:
    api.logs = {"a": 400, "b": b"one\n"}
    found = await read(api, tmp_path, None)
    assert [(log.error, log.text) for log in found] == [("it is waiting", ""), (None, "one\n")]
    (waiting,) = (log for log in await read(api, tmp_path, {"a": "5/1"}) if log.pod == "a")
    assert waiting.cursor == "5/1"


async def test_who_may_not_read_logs_is_told(api: Api, tmp_path: Path) -> None:
    api.logs = {"a": 403}
    with pytest.raises(ResideError, match="refused"):
        await read(api, tmp_path)
