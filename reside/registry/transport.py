"""HTTP to one registry: its address, credentials, deadlines and retries.

This uses httpx2 instead of oras: oras 0.2 has no timeouts, retries for two minutes before it reports that a registry
is down, and drops the bytes whose digest must be checked. Credentials come from Docker's configuration, credential
helpers included, through the docker SDK.

Invariants: every request has a deadline and every body a size limit; credentials are sent over TLS only and never
appear in a message; mirrors are contacted without a proxy, because they are addresses on this network.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

import anyio
import httpx2
import stamina

from reside.common.tls import authorities_with, trusted_authorities
from reside.registry.errors import ImageNotFound, MalformedImage, RegistryDenied, RegistryUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reside.registry.reference import ImageReference

MAX_BODY: Final = 8 * 1024 * 1024  # bytes; registries refuse manifests above 4 MiB
_TIMEOUT: Final = httpx2.Timeout(10, connect=5)  # seconds without progress
_ATTEMPTS: Final = 3  # for one request, so that the restart of a registry is tolerated
Content = bytes | Callable[[], AsyncIterator[bytes]] | None
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Answer:
    """A successful response of a registry."""

    status: int
    headers: httpx2.Headers
    body: bytes


@asynccontextmanager
async def connect(
    reference: ImageReference, mirrors: Mapping[str, str], authorities: Mapping[str, str] | None = None
) -> AsyncIterator[Connection]:
    """Open a connection to the registry of `reference`, or to its mirror.

    Args:
        reference: an image of the registry.
        mirrors: registry host → address of its mirror.
        authorities: host of a registry or mirror → PEM document with its own certificate authority, which is trusted
            for connections to it only.
    """
    mirror = mirrors.get(reference.registry)
    base = (mirror or f"https://{reference.registry}").rstrip("/")
    own = (authorities or {}).get(urlsplit(base).netloc)
    verify = trusted_authorities() if own is None else authorities_with(own)
    async with httpx2.AsyncClient(
        timeout=_TIMEOUT, verify=verify, trust_env=mirror is None, follow_redirects=True
    ) as client:
        yield Connection(client, base, reference)


class Connection:
    """Requests about one image; made by `connect`."""

    def __init__(self, client: httpx2.AsyncClient, base: str, reference: ImageReference) -> None:
        self._client = client
        self._base = base
        self._reference = reference
        self.image = str(reference)
        self._authorization: str | None = None

    def url(self, path: str) -> str:
        """Return the URL of `path` (such as `blobs/…`) in the image's repository."""
        return f"{self._base}/v2/{self._reference.repository}/{path}"

    def join(self, location: str) -> str:
        """Resolve a `Location` header, which may be relative."""
        return urljoin(self._base + "/", location)

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: Content = None,
        missing_is_fine: bool = False,
    ) -> Answer:
        """Send a request; retry while the registry is unavailable.

        Args:
            method: HTTP method.
            url: URL on this registry.
            headers: request headers.
            content: the body; a function returns a new iterator for each attempt.
            missing_is_fine: whether to return a 404 instead of raising.

        Raises:
            RegistryUnavailable, ImageNotFound, RegistryDenied, MalformedImage: see `reside.registry.errors`.
        """
        async for attempt in stamina.retry_context(
            on=RegistryUnavailable, attempts=_ATTEMPTS, wait_initial=0.2, wait_max=2.0, timeout=None
        ):
            with attempt:
                answer = await self._authorized(method, url, dict(headers or {}), content)
                if not (missing_is_fine and answer.status == HTTPStatus.NOT_FOUND):
                    self._check(answer)
        return answer

    async def _authorized(self, method: str, url: str, headers: dict[str, str], content: Content) -> Answer:
        """Send a request; on a 401, send it again with the credentials that the challenge asks for."""
        answer = await self._once(method, url, headers, content)
        if answer.status != HTTPStatus.UNAUTHORIZED:
            return answer
        self._authorization = await self._answer_challenge(answer.headers.get("www-authenticate", ""))
        if self._authorization is None:
            return answer
        return await self._once(method, url, headers, content)

    async def _once(self, method: str, url: str, headers: dict[str, str], content: Content) -> Answer:
        if self._authorization is not None and _origin(url) == _origin(self._base):
            headers = headers | {"Authorization": self._authorization}
        try:
            body_sent = content() if callable(content) else content
            async with self._client.stream(method, url, headers=headers, content=body_sent) as response:
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MAX_BODY:
                        raise MalformedImage(self.image, f"the registry sent a document above {MAX_BODY} bytes")
                return Answer(response.status_code, response.headers, bytes(body))
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise RegistryUnavailable(
                    self.image,
                    f"the certificate of registry {self._reference.registry!r} at {self._base} is not trusted: name "
                    "its certificate authority in the setting registryAuthorities (docs/own-cluster.md)",
                ) from error
            raise RegistryUnavailable(
                self.image,
                f"registry {self._reference.registry!r} at {self._base} can't be reached ({type(error).__name__}): "
                "check its name, that it runs, and the network, then try again",
            ) from error

    async def _answer_challenge(self, challenge: str) -> str | None:
        """Return the Authorization header that a 401 asks for; None if no credentials are available."""
        secure = self._base.startswith("https://")
        credentials = await anyio.to_thread.run_sync(_credentials, urlsplit(self._base).netloc) if secure else None
        scheme = challenge.partition(" ")[0].lower()
        if scheme == "basic" and credentials is not None:
            return _basic(credentials)
        fields = dict(_CHALLENGE.findall(challenge))
        realm = fields.get("realm", "")
        if scheme != "bearer" or not realm.startswith("https://" if secure else ("https://", "http://")):
            return None
        parameters = {key: fields[key] for key in ("service", "scope") if key in fields}
        headers = {"Authorization": _basic(credentials)} if credentials is not None else {}
        try:
            target = str(httpx2.URL(realm, params=parameters))
        except httpx2.InvalidURL:
            return None
        answer = await self._once("GET", target, headers, None)
        if answer.status != HTTPStatus.OK:
            return None
        token = _token(answer.body)
        return f"Bearer {token}" if token else None

    def _check(self, answer: Answer) -> None:
        """Raise the error for an HTTP status, without the response body."""
        status, registry = answer.status, self._reference.registry
        if status < HTTPStatus.BAD_REQUEST:
            return
        if status == HTTPStatus.NOT_FOUND:
            raise ImageNotFound(self.image, f"registry {registry!r} has no such image: check name and tag, or push it")
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise RegistryDenied(
                self.image,
                f"registry {registry!r} refuses access ({status}): the image may not exist, or log in with "
                f"`docker login {registry}` as a user with access (a cluster: docs/own-cluster.md)",
            )
        if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise RegistryUnavailable(self.image, f"registry {registry!r} answers {status}: try again later")
        raise MalformedImage(self.image, f"registry {registry!r} does not take the request ({status})")


def _origin(url: str) -> tuple[str, str]:
    """Return scheme and host of a URL: what must be equal for credentials to be sent."""
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def _credentials(registry: str) -> tuple[str, str] | None:
    """Return user and password from Docker's configuration, or None."""
    import docker.auth  # noqa: PLC0415 - slow to import, and needed only for registries that require credentials
    import docker.errors  # noqa: PLC0415 - as above

    try:
        found = docker.auth.load_config().resolve_authconfig(registry)
    except (docker.errors.DockerException, AttributeError, TypeError, ValueError):
        return None  # the file is malformed; the registry then refuses access, and that error names the cure
    fields = {key.lower(): value for key, value in (found or {}).items()}  # files and helpers differ in case
    if not fields.get("username"):
        return None
    return str(fields["username"]), str(fields.get("password") or "")


def _basic(credentials: tuple[str, str]) -> str:
    return "Basic " + base64.b64encode(":".join(credentials).encode()).decode()


def _token(body: bytes) -> str | None:
    try:
        document = json.loads(body)
    except ValueError:
        return None
    token = (document.get("token") or document.get("access_token")) if isinstance(document, dict) else None
    return token if isinstance(token, str) else None
