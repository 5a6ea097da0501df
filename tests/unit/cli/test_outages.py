"""What a command says while a part of the platform is away, and how it says how to go on."""

from __future__ import annotations

import asyncio
from io import StringIO
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import httpx2
import pytest
import stamina
from rich.console import Console
from support.eventually import eventually

from reside.access.errors import KubectlMissingError, PortForwardError
from reside.cli import notices, outages, output
from reside.cli.notices import Notice
from reside.cli.outages import leaving, outages_shown, repeated
from reside.cli.session import Session, endpoint_at, opened_meanwhile, opened_once
from reside.jazz import AccountId, JazzTimeout
from reside.model.errors import InvalidInput, NotReady
from reside.replica import client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.anyio


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> StringIO:
    written = StringIO()
    monkeypatch.setattr(output, "errors", Console(file=written, width=240))
    return written


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(notices.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def _without_pauses() -> Iterator[None]:
    with stamina.set_testing(True, attempts=3):
        yield


async def test_an_outage_is_said_once_with_its_cure_and_its_end(screen: StringIO, clock: list[float]) -> None:
    notice = Notice()
    for passed in (0.0, 0.5, 1.0, 2.0):
        clock[0] = 100 + passed
        notice.waits("Jazz can't be reached")
    notice.goes_on()
    first, last = screen.getvalue().splitlines()
    assert first.startswith("waiting: Jazz can't be reached; to do: check the network")
    assert last == "it goes on after 2 s"


async def test_a_short_outage_is_not_worth_a_line(screen: StringIO, clock: list[float]) -> None:
    notice = Notice()
    notice.waits("Alpha can't be reached")
    clock[0] += 0.5
    notice.goes_on()
    assert screen.getvalue() == ""


async def test_a_slow_call_is_said_to_be_slow(screen: StringIO) -> None:
    notice = Notice(quiet_s=0)
    with notice.after(0, "Alpha has not answered"):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    with notice.after(3600, "never"):
        pass
    assert screen.getvalue() == "waiting: Alpha has not answered\n"


@pytest.mark.usefixtures("_without_pauses")
async def test_a_call_is_repeated_after_an_outage_only(screen: StringIO) -> None:
    errors: list[Exception] = [JazzTimeout("no answer"), NotReady("etcd at x does not respond")]

    async def call() -> str:
        if errors:
            raise errors.pop(0)
        return "done"

    assert await repeated(call) == "done"
    said = screen.getvalue()
    assert "waiting: no answer" in said
    assert "waiting: etcd at x does not respond; to do: " in said
    assert "it goes on after" in said
    errors.append(InvalidInput("wrong"))
    with pytest.raises(InvalidInput, match="wrong"):
        await repeated(call)


async def test_an_end_by_an_outage_or_by_ctrl_c_says_how_to_go_on(screen: StringIO) -> None:
    with pytest.raises(NotReady, match=r"^away; load request 4 stays open$"), leaving("load request 4 stays open"):
        raise NotReady("away")
    with pytest.raises(asyncio.CancelledError), leaving("load request 5 stays open"):
        raise asyncio.CancelledError
    with pytest.raises(InvalidInput, match="wrong"), leaving("nothing"):
        raise InvalidInput("wrong")
    assert screen.getvalue() == "load request 5 stays open\n"


@pytest.mark.parametrize(("status", "absent"), [(200, None), (404, None), (503, "Alpha is starting")])
async def test_alpha_is_asked_at_its_address(status: int, absent: str | None) -> None:
    asked = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        return httpx2.Response(status)

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
        session: Any = SimpleNamespace(
            node=SimpleNamespace(connected=True), http=http, endpoint=endpoint_at("http://alpha")
        )
        assert await outages._absent(session) == absent
    assert asked == ["http://alpha/replicas/alpha/account"]


async def test_a_forward_that_is_not_ready_is_an_outage_and_opened_again() -> None:
    """No pod of Alpha may run while kubectl tries it."""
    answers: list[Exception | str] = [PortForwardError("svc/alpha", "not ready after 30 s"), "http://127.0.0.1:1"]

    async def open_it() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    endpoint = opened_once(open_it)
    with pytest.raises(NotReady, match="svc/alpha: not ready after 30 s"):
        await endpoint()
    assert await endpoint() == await endpoint() == "http://127.0.0.1:1"


async def test_an_endpoint_is_opened_while_something_else_runs() -> None:
    opened: list[str] = []

    async def open_it() -> str:
        opened.append("once")
        return "http://127.0.0.1:1"

    endpoint = opened_once(open_it)
    async with opened_meanwhile(endpoint):
        await eventually("the endpoint", lambda: list(opened))
        assert await endpoint() == "http://127.0.0.1:1"
    assert opened == ["once"]


async def test_an_endpoint_that_nobody_uses_fails_without_a_word_and_holds_nothing_up() -> None:
    tried: list[str] = []

    async def refuse() -> str:
        tried.append("refused")
        raise PortForwardError("svc/alpha", "no pod")

    async with opened_meanwhile(opened_once(refuse)):
        await eventually("a try", lambda: list(tried))
    forever = asyncio.Event()

    async def wait() -> str:
        tried.append("waits")
        await forever.wait()
        return ""

    endpoint = opened_once(wait)
    async with opened_meanwhile(endpoint):
        await eventually("a wait", lambda: tried[1:])
    assert tried == ["refused", "waits"]


class Unreachable:
    """A session with Jazz whose Alpha has no address."""

    node = SimpleNamespace(connected=True)
    http = None

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def endpoint(self) -> str:
        """Raise why."""
        raise self._error


@pytest.mark.parametrize("error", [NotReady("no pod"), PortForwardError("svc/alpha", "no pod"), KubectlMissingError()])
async def test_what_is_waited_for_in_jazz_does_not_end_because_alpha_has_no_address(
    error: Exception, screen: StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outages, "_LOOK_S", 0)
    session = cast("Session", Unreachable(error))
    async with outages_shown(session):
        await eventually("a look", screen.getvalue)
    assert screen.getvalue().startswith("waiting: Alpha can't be reached")


async def test_calls_at_the_same_time_say_once_what_they_wait_for(
    screen: StringIO, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`reside replica describe` asks about up to 64 permissions at once."""
    away = asyncio.Event()

    async def call_method(*_: object, waiting: Callable[[str], None], **__: object) -> str:
        waiting("Alpha can't be reached")
        clock[0] = 102
        waiting("Alpha can't be reached")
        await away.wait()
        return "done"

    monkeypatch.setattr(client, "call_method", call_method)
    nothing: Any = None
    session = Session(nothing, nothing, nothing, AccountId("co_zAlpha"), endpoint_at("http://a"), lambda: nothing)
    calls = [asyncio.create_task(session.call("look", {})) for _ in range(8)]
    await eventually("a line", screen.getvalue)
    away.set()
    assert await asyncio.gather(*calls) == ["done"] * 8
    said = screen.getvalue().splitlines()
    assert [line.partition(";")[0].partition(" after")[0] for line in said] == [
        "waiting: Alpha can't be reached",
        "it goes on",
    ]


async def test_a_call_that_fails_does_not_go_on(
    screen: StringIO, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[Exception | None] = [InvalidInput("wrong"), None]

    async def call_method(*_: object, waiting: Callable[[str], None], **__: object) -> None:
        end = ends.pop(0)
        if end is not None:
            waiting("Alpha can't be reached")
            clock[0] += 2
            waiting("Alpha can't be reached")
            raise end

    monkeypatch.setattr(client, "call_method", call_method)
    nothing: Any = None
    session = Session(nothing, nothing, nothing, AccountId("co_zAlpha"), endpoint_at("http://a"), lambda: nothing)
    with pytest.raises(InvalidInput):
        await session.call("look", {})
    await session.call("look", {})
    assert "goes on" not in screen.getvalue()
