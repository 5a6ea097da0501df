"""A domain tells which account is its Alpha's, over TLS with a certificate that is verified."""

from __future__ import annotations

import ssl
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from reside.cli import alpha_account
from reside.cli.alpha_account import ask_for_alpha
from reside.local.pki import KUBERNETES_CA, Certificate, certificate_path, ensure, key_path
from reside.model.errors import NotReady

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.anyio
ALPHA = "co_z2ABC"
PATH = "/replicas/alpha/account"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pki")
    ensure(folder, [Certificate("localhost", "localhost", names=("localhost",), server=True, client=False)])
    return folder


@pytest.fixture(autouse=True)
def _trusted(certificates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = ssl.create_default_context(cafile=str(certificate_path(certificates, KUBERNETES_CA)))
    monkeypatch.setattr(alpha_account, "trusted_authorities", lambda: context)


@contextmanager
def domain(certificates: Path, status: int, content: bytes, **headers: str) -> Iterator[str]:
    """Serve one answer at Alpha's path and yield the domain; any other path has the answer of an impostor."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == PATH else 200)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content if self.path == PATH else b'{"account": "co_zimpostor"}')

        def log_message(self, *_: Any) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_path(certificates, "localhost"), key_path(certificates, "localhost"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"https://localhost:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_the_domain_names_the_account(certificates: Path) -> None:
    with domain(certificates, 200, b'{"account": "co_z2ABC", "more": 1}') as url:
        assert await ask_for_alpha(url) == ALPHA


@pytest.mark.parametrize(
    ("status", "content", "headers", "text"),
    [
        (302, b"", {"Location": "/impostor"}, "HTTP 302"),
        (404, b"404 page not found", {}, "HTTP 404"),
        (503, b'{"error": {"code": "not-serving"}}', {}, "whether Alpha runs, or name the account with --alpha"),
        (200, b"<html>welcome</html>", {}, "does not serve a cluster of ReSide"),
        (200, b'{"account": "alpha"}', {}, "does not serve"),
        (200, b'{"account": "co_z' + b"a" * 200 + b'"}', {}, "does not serve"),
        (200, b'["co_z2ABC"]', {}, "does not serve"),
        (200, b'{"account": "co_z2ABC", "more": "' + b"x" * 1_000_000, {}, "does not serve"),
    ],
)
async def test_an_answer_that_names_no_account_is_refused(
    certificates: Path, status: int, content: bytes, headers: dict[str, str], text: str
) -> None:
    with domain(certificates, status, content, **headers) as url, pytest.raises(NotReady, match=text):
        await ask_for_alpha(url)


async def test_a_server_without_the_certificate_of_the_domain_is_not_asked(certificates: Path) -> None:
    answer = b'{"account": "co_z2ABC"}'
    with domain(certificates, 200, answer) as url, pytest.raises(NotReady, match="CERTIFICATE_VERIFY_FAILED"):
        await ask_for_alpha(url.replace("localhost", "127.0.0.1"))


async def test_a_domain_that_is_not_reached_is_named() -> None:
    with pytest.raises(
        NotReady, match=r"https://localhost:1 can't be reached: .*: check the name, the network, and SSL_CERT_FILE"
    ):
        await ask_for_alpha("https://localhost:1")
