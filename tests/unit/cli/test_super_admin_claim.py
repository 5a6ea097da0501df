"""The super admin claim: when Alpha is ready for it."""

from __future__ import annotations

import httpx
import pytest

from reside.cli.claim import wait_until_ready
from reside.model.errors import NotReady

pytestmark = pytest.mark.anyio
REFUSED = httpx.ConnectError("connection refused")


def alpha(*answers: httpx.Response | httpx.TransportError) -> httpx.AsyncClient:
    """Return a client of an Alpha that gives these responses in order; the last one is repeated."""
    left = list(answers)

    def answer(_request: httpx.Request) -> httpx.Response:
        found = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(found, httpx.TransportError):
            raise found
        return found

    return httpx.AsyncClient(transport=httpx.MockTransport(answer))


async def test_an_alpha_that_refuses_connections_or_is_not_ready_is_waited_for() -> None:
    async with alpha(REFUSED, httpx.ReadTimeout(""), httpx.Response(503), httpx.Response(200)) as http:
        await wait_until_ready(http, "http://alpha", 60)
        assert (await http.get("http://alpha/readyz")).is_success


async def test_an_unreachable_alpha_is_an_error_with_the_reason() -> None:
    async with alpha(REFUSED) as http:
        with pytest.raises(NotReady, match="Alpha was not reached in 0 s: no connection: connection refused"):
            await wait_until_ready(http, "http://alpha", 0.05)
