"""The RPC server: authenticate the caller by its token, call the declared function, send errors with their codes."""

from __future__ import annotations

import json
import secrets
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import structlog
from starlette.responses import JSONResponse

from reside.common import tracing
from reside.common.traceparent import TRACEPARENT, parse
from reside.common.transience import is_transient, safe_text
from reside.jazz import TokenRefused
from reside.model.endpoints import INSTANCE_HEADER, signed_path
from reside.model.errors import Conflict, InvalidInput, NotAllowed, NotReady, ResideError
from reside.model.identities import resolved
from reside.replica.bodies import Bodies
from reside.replica.call import Call
from reside.replica.health import RPC_CALLS, RPC_SECONDS
from reside.replica.refusals import NotServing, OtherInstance

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from starlette.requests import Request
    from starlette.responses import Response

    from reside.jazz import AccountId, Json, RequestVerifier
    from reside.replica.context import Context
    from reside.replica.declaration import Declaration

_log = structlog.get_logger(__name__)

_FAILED: Final = 500
"""The first status of errors that are not the caller's."""
_NO_SPAN: Final = nullcontext(tracing.Span())
_STATUS: tuple[tuple[type[ResideError], int], ...] = (
    (InvalidInput, 400),
    (NotAllowed, 403),
    (Conflict, 409),
    (NotReady, 503),
)


class _NoSuchMethod(ResideError):  # noqa: N818 - named after what is wrong, as in reside.model.errors
    code = "not-found"


class _Unauthenticated(ResideError):  # noqa: N818 - see above
    code = "unauthenticated"


@dataclass
class RpcServer:
    """Handles `POST /replicas/<replica>/rpc/<contract identity>/<method>`.

    Attributes:
        replica: name of the instance.
        context: None until the start sequence has reached serving; earlier calls are refused as not serving.
        verifier: authenticates the caller; None as long as `context` is.
        instance: id of this process; tokens for others are refused.
    """

    replica: str
    declaration: Declaration
    context: Context | None = None
    verifier: RequestVerifier | None = None
    instance: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    _bodies: Bodies = field(default_factory=Bodies)

    def open(self, context: Context, verifier: RequestVerifier) -> None:
        """Start to handle calls."""
        self.context, self.verifier = context, verifier

    async def __call__(self, request: Request) -> Response:
        """Handle one request."""
        contract, method = resolved(request.path_params["contract"]), request.path_params["method"]
        known = (contract, method) in self.declaration.methods
        labels = (self.replica, contract if known else "unknown", method if known else "unknown")
        began = perf_counter()
        with _span(request, *labels) as span:
            response = await self._respond(request, contract, method)
            span.set("http.response.status_code", response.status_code)
            if response.status_code >= _FAILED:
                span.fail(str(response.status_code))
        _seconds(*labels).observe(perf_counter() - began)
        _calls(*labels, str(response.status_code)).inc()
        return response

    async def tell_account(self, request: Request) -> Response:
        """Tell the account of this replica to everybody, so that a client which verifies a certificate can trust it."""
        try:
            if self.context is None:
                raise NotServing(f"{self.replica} is starting: try again")
            if request.path_params["replica"] != self.replica:
                raise _NoSuchMethod(f"this is replica {self.replica}, not {request.path_params['replica']}")
        except ResideError as error:
            return _refusal(error)
        return JSONResponse({"account": self.context.node.account_id}, headers={"cache-control": "no-store"})

    async def _respond(self, request: Request, contract: str, method: str) -> Response:
        try:
            return JSONResponse(await self._answer(request))
        except ResideError as error:
            return _refusal(error)
        except Exception as error:  # noqa: BLE001 - the outermost handler: a bug in a handler must not end the server
            if is_transient(error):
                reason = safe_text(error)
                _log.warning("call can't be handled now", contract=contract, method=method, error=reason)
                return _refusal(NotReady(f"{self.replica} can't handle {method} now: {reason}"))
            _log.exception("call failed", contract=contract, method=method)
            return _refusal(ResideError(f"{self.replica} failed to handle {method}: see its log"))

    async def _answer(self, request: Request) -> Json:
        if self.context is None or self.verifier is None:
            raise NotServing(f"{self.replica} is starting: try again")
        if request.headers.get(INSTANCE_HEADER) != self.instance:
            agent_id = self.context.credentials.agent_id
            raise OtherInstance(
                f"this is another process of {self.replica}: make a token for it", self.instance, agent_id
            )
        async with self._bodies.read(request) as content:
            return await self._handle(self.context, self.verifier, request, content)

    async def _handle(self, context: Context, verifier: RequestVerifier, request: Request, content: bytes) -> Json:
        contract, method = resolved(request.path_params["contract"]), request.path_params["method"]
        account = await self._authenticate(verifier, request, content)
        if request.path_params["replica"] != self.replica:
            raise _NoSuchMethod(f"this is replica {self.replica}, not {request.path_params['replica']}")
        handler = self.declaration.methods.get((contract, method))
        if handler is None:
            raise _NoSuchMethod(f"{self.replica} has no method {method} of {contract}")
        return await handler(Call(context, account, contract, method, _parse(content)))

    async def _authenticate(self, verifier: RequestVerifier, request: Request, content: bytes) -> AccountId:
        try:
            return await verifier.verify(
                request.headers.get("authorization"),
                method=request.method,
                path=signed_path(request.scope["path"], self.instance),
                body=content,
            )
        except TokenRefused as error:
            raise _Unauthenticated(str(error)) from None


# A look-up of a series takes longer than to write to it. Their number is limited: labels are names of declared methods.
_calls = cache(RPC_CALLS.labels)
_seconds = cache(RPC_SECONDS.labels)


def _span(request: Request, replica: str, contract: str, method: str) -> AbstractContextManager[tracing.Span]:
    """Return the span of a call, as a part of the caller's trace if it sends one."""
    if TRACEPARENT not in request.headers and not tracing.is_recording():
        return _NO_SPAN
    parent = parse(request.headers.get(TRACEPARENT))
    attributes: tracing.Attributes = {"reside.replica": replica, "reside.contract": contract, "reside.method": method}
    return tracing.span(f"handle {method}", "server", parent=parent, attributes=attributes)


def _parse(content: bytes) -> dict[str, Any]:
    try:
        body = json.loads(content or b"{}")
    except ValueError:
        raise InvalidInput("the body is not JSON: send a JSON object") from None
    if not isinstance(body, dict):
        raise InvalidInput("the body is not a JSON object: send one, e.g. {}")
    return body


def _refusal(error: ResideError) -> Response:
    if isinstance(error, _Unauthenticated):
        status = 401
    elif isinstance(error, _NoSuchMethod):
        status = 404
    elif isinstance(error, OtherInstance):
        return JSONResponse(_body(error) | {"instance": error.instance, "agent": error.agent_id}, 421)
    else:
        status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    return JSONResponse(_body(error), status)


def _body(error: ResideError) -> dict[str, Any]:
    return {"error": {"code": error.code, "message": str(error)}}
