"""A client for the few requests that this package sends to a local cluster's API server, as its administrator."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import yaml

from reside.local.addons import ApiObject
from reside.local.errors import LocalError
from reside.local.layout import Layout
from reside.local.pki import KUBERNETES_CA, certificate_path, key_path

FIELD_MANAGER = "reside-local"
_TIMEOUT = 15.0


class ApiError(LocalError):
    """The API server refused a request or could not be reached; the message contains the reason."""


class Api:
    """A client of a local cluster's API server.

    Args:
        client: HTTP client that trusts the server's CA and has a client certificate.
    """

    def __init__(self, client: httpx2.Client) -> None:
        self._client = client

    def get(self, path: str) -> dict[str, Any] | None:
        """Return an object; None if it does not exist."""
        response = self._send("GET", path)
        if response.status_code == httpx2.codes.NOT_FOUND:
            return None
        return self._checked(response)

    def delete(self, path: str) -> None:
        """Delete an object, unless it does not exist."""
        response = self._send("DELETE", path)
        if response.status_code != httpx2.codes.NOT_FOUND:
            self._checked(response)

    def apply(self, desired: ApiObject) -> None:
        """Create or update an object by a server-side apply that takes over fields of other managers."""
        self.apply_text(desired.path, yaml.safe_dump(desired.body))

    def apply_text(self, path: str, text: str) -> None:
        """Apply an object that is YAML already; it takes seconds to parse a large one in Python."""
        response = self._send(
            "PATCH",
            path,
            params={"fieldManager": FIELD_MANAGER, "force": "true"},
            headers={"Content-Type": "application/apply-patch+yaml"},
            content=text,
        )
        self._checked(response)

    def _send(self, method: str, path: str, **options: Any) -> httpx2.Response:
        try:
            return self._client.request(method, path, **options)
        except httpx2.HTTPError as error:
            raise ApiError(f"{method} {path}: {error}") from error

    @staticmethod
    def _checked(response: httpx2.Response) -> dict[str, Any]:
        if response.is_error:
            raise ApiError(
                f"{response.request.method} {response.request.url.path}: {response.status_code} {response.text[:500]}"
            )
        document: dict[str, Any] = response.json()
        return document


@contextmanager
def connect(layout: Layout) -> Iterator[Api]:
    """Connect to a local cluster's API server as its administrator."""
    context = ssl.create_default_context(cafile=str(certificate_path(layout.pki, KUBERNETES_CA)))
    context.load_cert_chain(str(certificate_path(layout.pki, "admin")), str(key_path(layout.pki, "admin")))
    with httpx2.Client(base_url=layout.api_url, verify=context, timeout=_TIMEOUT, trust_env=False) as client:
        yield Api(client)


def is_ready(client: Api, path: str) -> bool:
    """Return whether an object has the condition Ready; False if it can't be read at the moment."""
    try:
        return has_condition(client.get(path), "Ready")
    except ApiError:
        return False


def has_condition(document: dict[str, Any] | None, kind: str) -> bool:
    """Return whether a condition is true in an object's status."""
    conditions = ((document or {}).get("status") or {}).get("conditions") or []
    return any(item["type"] == kind and item["status"] == "True" for item in conditions)
