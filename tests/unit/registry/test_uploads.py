"""How uploads treat responses that a correct registry does not give."""

import httpx2
import pytest

from reside.registry import Bytes, ImageReference, MalformedImage
from reside.registry.transport import Connection
from reside.registry.upload import push_blob

pytestmark = pytest.mark.anyio


async def test_a_server_without_an_upload_location_is_not_a_registry() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(404 if request.method == "HEAD" else 202)

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as client:
        connection = Connection(client, "http://registry", ImageReference.parse("registry.example.org/a/b:v1"))
        with pytest.raises(MalformedImage, match="returned no upload location"):
            await push_blob(connection, Bytes(b"content"))
