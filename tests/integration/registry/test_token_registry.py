"""The registry client with a real registry that wants tokens, and the token server that it names."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from support.registry import PASSWORD, USER, private_registry

from reside.registry import Bytes, ImageReference, RegistryClient, RegistryDenied

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.anyio


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _token(folder: Path, access: list[dict[str, Any]]) -> str:
    """Return a token (JWT) that is signed with the registry's key and carries its certificate."""
    certificate = x509.load_pem_x509_certificate((folder / "tls.crt").read_bytes())
    key = serialization.load_pem_private_key((folder / "tls.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    chain = [base64.b64encode(certificate.public_bytes(serialization.Encoding.DER)).decode()]
    now = int(time.time())
    claims = {"iss": "tokens", "aud": "test", "sub": USER, "nbf": now - 60, "exp": now + 600, "iat": now, "jti": "1"}
    parts = [{"typ": "JWT", "alg": "ES256", "x5c": chain}, {**claims, "access": access}]
    signed = ".".join(_encoded(json.dumps(part).encode()) for part in parts)
    r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{signed}.{_encoded(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


@dataclass(frozen=True)
class TokenServer:
    """A server of tokens on `localhost`, with the certificate of the registry in `folder`."""

    server: ThreadingHTTPServer
    folder: Path
    thread: threading.Thread

    @property
    def url(self) -> str:
        """The realm, which the registry names to its clients."""
        return f"https://localhost:{self.server.server_port}/token"

    def start(self) -> None:
        """Answer, with the registry's certificate, which must exist now."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "tls.crt", self.folder / "tls.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread.start()


@contextmanager
def token_server(folder: Path) -> Iterator[TokenServer]:
    """Open a token server, which answers once it is started."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            expected = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
            allowed = self.headers.get("Authorization") == f"Basic {expected}"
            scopes = parse_qs(urlsplit(self.path).query).get("scope", [])
            access = []
            for scope in " ".join(scopes).split():
                kind, name, actions = scope.split(":")
                access.append({"type": kind, "name": name, "actions": actions.split(",")})
            body = json.dumps({"token": _token(folder, access)} if allowed else {}).encode()
            self.send_response(200 if allowed else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's signature
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made = TokenServer(server, folder, threading.Thread(target=server.serve_forever))
        try:
            yield made
        finally:
            if made.thread.is_alive():
                server.shutdown()
                made.thread.join()


async def test_images_are_pushed_and_read_with_tokens_that_the_password_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    folder = tmp_path / "registry"
    with token_server(folder) as tokens, private_registry(folder, tokens.url) as server:
        tokens.start()
        client = RegistryClient({}, authorities={server.host: server.authority}, architecture="amd64")
        first, second = (ImageReference.parse(f"{server.host}/acme/{name}:v1") for name in ("first", "second"))
        config = b'{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}'
        (tmp_path / "config.json").write_text("{}")
        with pytest.raises(RegistryDenied):
            await client.push_image(first, config, [Bytes(b"layer")])
        (tmp_path / "config.json").write_text(server.login)
        digest = await client.push_image(first, config, [Bytes(b"layer")])
        assert await client.push_image(second, config, [Bytes(b"layer")], first) == digest
        assert await client.resolve(second) == digest
