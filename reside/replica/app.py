"""The HTTP application of a replica: RPC, probes, metrics."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, Router

from reside.model.endpoints import LIVENESS_PATH, READINESS_PATH, account_path, rpc_path

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from reside.replica.health import Health
    from reside.replica.rpc import RpcServer

ACCOUNT_ROUTE = account_path("{replica}")
RPC_ROUTE = rpc_path("{replica}", "{contract:path}", "{method}")


def build_app(health: Health, rpc: RpcServer) -> ASGIApp:
    """Return the application that a replica serves on its listen port."""

    async def live(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def ready(_: Request) -> Response:
        missing = health.missing()
        return JSONResponse({"ready": not missing, "missing": missing}, 503 if missing else 200)

    async def metrics(_: Request) -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    async def call(request: Request) -> Response:
        health.last_call_at = asyncio.get_running_loop().time()
        return await rpc(request)

    routes = [
        Route(RPC_ROUTE, call, methods=["POST"]),  # first, because routes are tried in turn
        Route(LIVENESS_PATH, live),
        Route(READINESS_PATH, ready),
        Route("/metrics", metrics),
        Route(ACCOUNT_ROUTE, rpc.tell_account),
    ]
    return _CloseWhileDraining(Router(routes), health)  # without Starlette's middlewares: no route lets an error escape


class _CloseWhileDraining:
    """Closes each connection after the response while the process is stopping, so that clients move to another pod."""

    def __init__(self, app: ASGIApp, health: Health) -> None:
        self._app = app
        self._health = health

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and self._health.draining:
                message["headers"] = [*message.get("headers", []), (b"connection", b"close")]
            await send(message)

        await self._app(scope, receive, sending)
