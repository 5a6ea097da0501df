"""Authentication with a registry: challenges are answered, credentials go to their registry only."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import httpx2
import pytest

from reside.registry import ImageReference, RegistryDenied, RegistryUnavailable, transport
from reside.registry.transport import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio
SECRET = "hunter2"
REFERENCE = ImageReference.parse("registry.example.org/a/b:v1")


@pytest.fixture(autouse=True)
def _login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_credentials", lambda _registry: ("user", SECRET))


async def get(
    handler: Callable[[httpx2.Request], httpx2.Response], base: str = "https://registry.example.org"
) -> bytes:
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(handler)) as client:
        connection = Connection(client, base, REFERENCE)
        return (await connection.send("GET", connection.url("manifests/v1"))).body


async def test_a_bearer_challenge_is_answered_with_a_token_for_its_scope() -> None:
    def handler(request: httpx2.Request) -> httpx2.Response:
        if request.url.host == "auth.example.org":
            assert dict(request.url.params) == {"service": "s", "scope": "repository:a/b:pull"}
            assert base64.b64decode(request.headers["Authorization"].removeprefix("Basic ")) == b"user:hunter2"
            return httpx2.Response(200, json={"token": "t0ken"})
        if request.headers.get("Authorization") == "Bearer t0ken":
            return httpx2.Response(200, content=b"here")
        challenge = 'Bearer realm="https://auth.example.org/token",service="s",scope="repository:a/b:pull"'
        return httpx2.Response(401, headers={"WWW-Authenticate": challenge})

    assert await get(handler) == b"here"


async def test_a_refused_login_names_the_cure_and_not_the_password() -> None:
    def handler(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(401, headers={"WWW-Authenticate": 'Basic realm="x"'})

    with pytest.raises(RegistryDenied, match=r"docker login registry\.example\.org") as caught:
        await get(handler)
    assert SECRET not in str(caught.value)


async def test_credentials_never_go_to_a_plain_address() -> None:
    seen: list[str | None] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers.get("Authorization"))
        return httpx2.Response(401, headers={"WWW-Authenticate": 'Basic realm="x"'})

    with pytest.raises(RegistryDenied):
        await get(handler, "http://127.0.0.1:5000")
    assert set(seen) == {None}


async def test_credentials_stay_with_their_registry_when_it_redirects_or_names_an_address_without_tls() -> None:
    seen: dict[str, str | None] = {}

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen[str(request.url)] = request.headers.get("Authorization")
        if request.url.path == "/v2/a/b/manifests/v1" and "Authorization" not in request.headers:
            return httpx2.Response(401, headers={"WWW-Authenticate": 'Basic realm="x"'})
        if request.url.path == "/v2/a/b/manifests/v1":
            return httpx2.Response(307, headers={"Location": "https://storage.example.net/blob"})
        return httpx2.Response(200)

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(handler), follow_redirects=True) as client:
        connection = Connection(client, "https://registry.example.org", REFERENCE)
        await connection.send("GET", connection.url("manifests/v1"))
        await connection.send("PUT", connection.join("http://registry.example.org/upload"))
        await connection.send("PUT", connection.join("https://registry.example.org:444/upload"))
    with_credentials = {url for url, value in seen.items() if value is not None}
    assert with_credentials == {"https://registry.example.org/v2/a/b/manifests/v1"}
    assert len(seen) == 4


async def test_a_token_server_without_tls_gets_no_credentials_for_a_registry_with_tls() -> None:
    hosts: list[str] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        hosts.append(request.url.host)
        return httpx2.Response(401, headers={"WWW-Authenticate": 'Bearer realm="http://auth.example.org/token"'})

    with pytest.raises(RegistryDenied):
        await get(handler)
    assert set(hosts) == {"registry.example.org"}


async def test_a_failing_registry_is_retried_and_then_unavailable() -> None:
    answers = [503, 429, 500]

    def handler(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(answers.pop(0))

    with pytest.raises(RegistryUnavailable, match="answers 500: try again later"):
        await get(handler)
    assert answers == []


async def test_an_endless_body_is_truncated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_BODY", 10)
    with pytest.raises(transport.MalformedImage, match="above 10 bytes"):
        await get(lambda _request: httpx2.Response(200, content=b"x" * 11))


async def test_a_mirror_gets_its_own_credentials_and_not_those_of_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(transport, "_credentials", asked.append)

    def handler(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(401, headers={"WWW-Authenticate": 'Basic realm="x"'})

    with pytest.raises(RegistryDenied):
        await get(handler, "https://mirror.example.net:8443")
    assert set(asked) == {"mirror.example.net:8443"}


async def test_a_token_server_that_is_no_address_counts_as_refused() -> None:
    def handler(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(401, headers={"WWW-Authenticate": 'Bearer realm="https://x:abc/"'})

    with pytest.raises(RegistryDenied):
        await get(handler)
