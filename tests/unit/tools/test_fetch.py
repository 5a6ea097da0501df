"""Archives of vendors, fetched from a file server on loopback: whole, damaged, slow and absent ones."""

import hashlib
import io
import socket
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tools.builder import fetch
from tools.builder.downloads import DOWNLOADS, Download
from tools.builder.golang import BuildError
from tools.builder.units import KUBERNETES_VERSION, UNITS

PROGRAM = b"#!/bin/sh\necho v1.2.3\n"
PATIENT = fetch.Limits(silence=60, rate=0)  # the machine may be busy


def archive(**files: bytes) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"vendor/bin/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return whole.getvalue()


ARCHIVE = archive(other=b"not wanted", tool=PROGRAM)


def pinned(content: bytes = ARCHIVE) -> Download:
    url = "https://vendor.example/v1/tool.tar.gz"
    return Download(url, "sha256", hashlib.sha256(content).hexdigest(), {"tool": "vendor/bin/tool"})


def whole(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(ARCHIVE)))
    handler.end_headers()
    if handler.command == "GET":
        handler.wfile.write(ARCHIVE)


def cut_short(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(ARCHIVE)))
    handler.end_headers()
    handler.wfile.write(ARCHIVE[:50])
    handler.close_connection = True


def dribbling(handler: BaseHTTPRequestHandler) -> None:
    """Send bytes often enough that the connection is never silent."""
    handler.send_response(200)
    handler.end_headers()
    with suppress(OSError):  # the client leaves
        while True:
            handler.wfile.write(b".")
            time.sleep(0.05)


def silent(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    handler.connection.recv(1)  # until the client leaves


def without_a_number(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "many")
    handler.end_headers()
    handler.wfile.write(b"<html>log in first</html>")
    handler.close_connection = True


def absent(handler: BaseHTTPRequestHandler) -> None:
    handler.send_error(404)


@contextmanager
def server(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[tuple[str, list[str]]]:
    """Serve on loopback; yield the address and the requests so far."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.command} {self.path}")
            answer(self)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{running.server_address[1]}", asked
    finally:
        running.shutdown()
        thread.join()
        running.server_close()


def fetched(address: str, folder: Path, download: Download | None = None, limits: fetch.Limits = PATIENT) -> Path:
    (folder / "bin").mkdir()
    fetch.Fetcher(address, limits).fetch(download or pinned(), folder / "bin", folder, ["tool"], lambda _: None)
    return folder / "bin/tool"


def test_a_right_archive_is_fetched_from_a_mirror_and_only_what_is_wanted_is_unpacked(tmp_path: Path) -> None:
    with server(whole) as (address, asked):
        tool = fetched(address, tmp_path)
    assert tool.read_bytes() == PROGRAM
    assert tool.stat().st_mode & 0o777 == 0o755
    assert asked == ["GET /vendor.example/v1/tool.tar.gz"]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["bin", "tool"]


@pytest.mark.parametrize(
    ("answer", "limits", "says"),
    [
        (cut_short, PATIENT, f"ended after 50 of {len(ARCHIVE)} bytes"),
        (dribbling, fetch.Limits(silence=60, rate=1_000_000, window=0.3), "too slow: 0 kB/s"),
        (silent, fetch.Limits(silence=0.5), "timed out"),
        (without_a_number, PATIENT, "its sha256 is not the one that is pinned"),
        (absent, PATIENT, "HTTP 404"),
    ],
)
def test_a_fault_is_an_error_that_leaves_nothing(
    tmp_path: Path, answer: Callable[[BaseHTTPRequestHandler], None], limits: fetch.Limits, says: str
) -> None:
    with server(answer) as (address, _), pytest.raises(fetch.FetchError, match=says):
        fetched(address, tmp_path, limits=limits)
    assert [path.name for path in tmp_path.rglob("*")] == ["bin"]


def test_an_archive_with_another_checksum_is_not_unpacked(tmp_path: Path) -> None:
    with server(whole) as (address, _), pytest.raises(fetch.FetchError, match="its sha256 is not the one that is pin"):
        fetched(address, tmp_path, pinned(b"another"))
    assert [path.name for path in tmp_path.rglob("*")] == ["bin"]


def test_a_whole_archive_has_a_deadline(tmp_path: Path) -> None:
    late = fetch.Limits(seconds=0.2, silence=60, rate=0)
    with server(dribbling) as (address, _), pytest.raises(fetch.FetchError, match="not fetched within"):
        fetched(address, tmp_path, limits=late)


def test_what_is_longer_than_an_archive_is_given_up(tmp_path: Path) -> None:
    short = fetch.Limits(silence=60, rate=0, size=len(ARCHIVE) - 1)
    with server(whole) as (address, _), pytest.raises(fetch.FetchError, match="longer than 0 MB"):
        fetched(address, tmp_path, limits=short)
    assert [path.name for path in tmp_path.rglob("*")] == ["bin"]


def test_a_binary_that_the_archive_lacks_is_named(tmp_path: Path) -> None:
    download = Download("https://v.example/a", "sha256", hashlib.sha256(ARCHIVE).hexdigest(), {"tool": "vendor/else"})
    with server(whole) as (address, _), pytest.raises(fetch.FetchError, match="does not contain vendor/else"):
        fetched(address, tmp_path, download)


def test_stop_ends_a_fetch(tmp_path: Path) -> None:
    with server(dribbling) as (address, _):
        fetcher = fetch.Fetcher(address, fetch.Limits(rate=0))
        with pytest.raises(BuildError, match="stopped"):
            fetcher.fetch(pinned(), tmp_path, tmp_path, ["tool"], lambda _: fetcher.stop())


def test_only_servers_that_answer_are_used_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "PROBE_SECONDS", 60.0)  # the machine may be busy
    with server(whole) as (address, asked), server(absent) as (other, _):
        found = fetch.Fetcher("").reachable(
            {
                "here": Download(f"{address}/a", "sha256", "", {}),
                "gone": Download(f"{other}/a", "sha256", "", {}),
                "refused": Download("http://127.0.0.1:1/a", "sha256", "", {}),
            }
        )
    assert found == {"here": None, "gone": "127.0.0.1: HTTP 404", "refused": "127.0.0.1: Connection refused"}
    assert asked == ["HEAD /a"]


def test_servers_that_say_nothing_are_given_up_together() -> None:
    """The look-up of a name has no timeout, so the wait has one: for all servers, not for each."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        found = fetch.probe({"one": f"{address}/1", "two": f"{address}/2"}, 0.2)
    assert all(why is not None for why in found.values())


@pytest.mark.parametrize(
    ("setting", "reachable"), [("0", "RESIDE_FETCH=0"), ("1", None), ("http://mirror.example/tools/", None)]
)
def test_the_setting_decides_without_asking_a_server(setting: str, reachable: str | None) -> None:
    assert fetch.Fetcher(setting).reachable({"tool": pinned()}) == {"tool": reachable}


def test_another_setting_is_refused() -> None:
    with pytest.raises(fetch.FetchError, match="RESIDE_FETCH is 'yes': set it to 0, to 1, or to the http address"):
        fetch.Fetcher("yes")


def test_downloads_have_all_binaries_of_their_unit_in_its_version() -> None:
    units = {unit.name: unit for unit in UNITS}
    for (name, machine), download in DOWNLOADS.items():
        assert sorted(download.members) == sorted(units[name].binaries)
        assert len(download.checksum) == hashlib.new(download.algorithm).digest_size * 2
        assert KUBERNETES_VERSION in download.url
        assert machine.startswith("Linux ")
