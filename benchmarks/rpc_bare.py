"""A bare Starlette on uvicorn, for benchmarks/rpc.py: reads JSON, answers JSON. The port is the argument."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request


async def greet(request: Request) -> JSONResponse:
    """Answer as the greeter does."""
    body = await request.json()
    return JSONResponse({"message": f"Hello, {body['name']}", "version": 1})


if __name__ == "__main__":
    app = Starlette(routes=[Route("/greet", greet, methods=["POST"])])
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_config=None, access_log=False, lifespan="off")
