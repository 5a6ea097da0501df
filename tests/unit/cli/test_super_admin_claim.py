"""The super admin claim: when Alpha is ready for it."""

from __future__ import annotations

import httpx2
import pytest

from reside.cli.claim import wait_until_ready
from reside.model.errors import NotReady

pytestmark = pytest.mark.anyio
REFUSED = httpx2.ConnectError("connection refused")


def alpha(*answers: httpx2.Response | httpx2.TransportError) -> httpx2.AsyncClient:
    """Return a client of an Alpha that gives these responses in order; the last one is repeated."""
    left = list(answers)

    def answer(_request: httpx2.Request) -> httpx2.Response:
        found = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(found, httpx2.TransportError):
            raise found
        return found

    return httpx2.AsyncClient(transport=httpx2.MockTransport(answer))


async def test_an_alpha_that_refuses_connections_or_is_not_ready_is_waited_for() -> None:
    async with alpha(REFUSED, httpx2.ReadTimeout(""), httpx2.Response(503), httpx2.Response(200)) as http:
        await wait_until_ready(http, "http://alpha", 60)
        assert (await http.get("http://alpha/readyz")).is_success


async def test_an_unreachable_alpha_is_an_error_with_the_reason() -> None:
    async with alpha(REFUSED) as http:
        with pytest.raises(NotReady, match="Alpha was not reached in 0 s: no connection: connection refused"):
            await wait_until_ready(http, "http://alpha", 0.05)
