"""Traces over real connections: from a caller to a handler and on, to a real receiver, which may fail."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio import subprocess
from typing import TYPE_CHECKING

import httpx2
import pytest
from support.replicas import GREETING, greeting_contract
from support.traces import Receiver, receiver, recording

from reside.common import tracing
from reside.model.errors import NotAllowed, ResideError
from reside.replica import Call, Replica
from reside.testing import cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.anyio


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiver() as running, recording(running, monkeypatch):
        yield running


def build_greeter() -> Replica:
    replica = Replica(greeting_contract())

    @replica.method(GREETING, "greet")
    async def greet(call: Call) -> str:
        call.require("greet")
        with tracing.span("think", attributes={"words": 2}):
            return str(tracing.current())

    @replica.method(GREETING, "fail")
    async def fail(call: Call) -> str:
        raise ValueError("with a password")

    return replica


async def test_the_spans_of_a_call_are_one_trace_across_the_connection(collector: Receiver) -> None:
    async with cluster() as test:
        greeter, ada = await test.add(build_greeter(), "greeter"), await test.user()
        await test.grant(ada, greeter, "greet")
        async with greeter.running():
            with tracing.span("the cause"):
                await ada.call(greeter, "greet", {})
    seen = await asyncio.to_thread(collector.wait, lambda seen: len(seen) == 5)
    refused = next(span for span in seen if span.attributes.get("http.response.status_code") == 421)
    assert refused.name == "handle greet", "the first call of a process names the process that receives it"
    spans = {span.name: span for span in seen if span is not refused}
    assert len({span.trace for span in spans.values()}) == 1
    chain = [spans[name] for name in ("the cause", "call greet", "handle greet", "think")]
    assert [span.parent for span in chain] == ["", *(span.id for span in chain[:-1])]
    assert spans["handle greet"].attributes == {
        "reside.replica": "greeter",
        "reside.contract": GREETING,
        "reside.method": "greet",
        "http.response.status_code": 200,
    }
    assert not any(span.failed for span in seen)


async def test_errors_are_recorded_without_their_content(collector: Receiver) -> None:
    async with cluster() as test:
        greeter, ada = await test.add(build_greeter(), "greeter"), await test.user()
        async with greeter.running():
            with pytest.raises(NotAllowed):
                await ada.call(greeter, "greet", {"secret": "of the caller"})
            with pytest.raises(ResideError):
                await ada.call(greeter, "fail", {})
    spans = await asyncio.to_thread(collector.wait, lambda seen: len(seen) == 5)
    assert {(span.name, span.failed, span.attributes.get("error.type")) for span in spans} == {
        ("call greet", True, "NotAllowed"),
        ("handle greet", False, None),
        ("call fail", True, "ResideError"),
        ("handle fail", True, "500"),
    }
    sent = b"".join(collector.bodies)
    assert b"password" not in sent
    assert b"of the caller" not in sent
    assert ada.account.encode() not in sent


@pytest.mark.parametrize(
    "header", ["00-" + "f" * 600, "nonsense", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]
)
async def test_what_is_no_traceparent_begins_a_trace_of_its_own(collector: Receiver, header: str) -> None:
    async with cluster() as test, httpx2.AsyncClient(trust_env=False) as http:
        greeter = await test.add(build_greeter(), "greeter")
        async with greeter.running() as context:
            url = f"{context.node.account.profile['endpoints']['internal']}/replicas/greeter/rpc/{GREETING}/greet"
            await http.post(url, content=b"{}", headers={"traceparent": header, "baggage": "key=value"})
    (span,) = await asyncio.to_thread(collector.wait, lambda seen: seen)
    assert (span.name, span.parent) == ("handle greet", "")


async def test_a_caller_that_does_not_sample_decides_for_the_handler(collector: Receiver) -> None:
    unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
    async with cluster() as test:
        greeter, ada = await test.add(build_greeter(), "greeter"), await test.user()
        await test.grant(ada, greeter, "greet")
        async with greeter.running():
            with tracing.span("unsampled", parent=unsampled):
                seen = await ada.call(greeter, "greet", {})
            assert seen.startswith(unsampled[:36])
            assert seen.endswith("-00")
            with tracing.span("sampled"):
                pass
    (span,) = await asyncio.to_thread(collector.wait, lambda seen: seen)
    assert span.name == "sampled"


async def test_a_replica_that_records_nothing_passes_the_trace_on() -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with cluster() as test:
        greeter, ada = await test.add(build_greeter(), "greeter"), await test.user()
        await test.grant(ada, greeter, "greet")
        async with greeter.running():
            with tracing.span("nothing", parent=parent):
                assert await ada.call(greeter, "greet", {}) == parent
            assert await ada.call(greeter, "greet", {}) == "None"


@pytest.mark.parametrize("fault", ["refuses", "is not there"])
async def test_a_receiver_that_fails_disturbs_no_call(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    with receiver() as failing, recording(failing, monkeypatch):
        failing.status = 400
        if fault == "is not there":
            failing.close()
        async with cluster() as test:
            greeter, ada = await test.add(build_greeter(), "greeter"), await test.user()
            await test.grant(ada, greeter, "greet")
            async with greeter.running():
                for _ in range(3):
                    assert (await ada.call(greeter, "greet", {})).startswith("00-")
        assert not tracing.disable(0.5)
        failing.close()


async def test_the_command_sends_its_span_and_says_if_it_could_not(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("command")
    with receiver() as running:
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "RESIDE_CONFIG": str(folder)}
        environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = running.url
        command = (sys.executable, "-m", "reside.cli.main", "account", "list", "--output", "json")
        done = await subprocess.create_subprocess_exec(
            *command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        _, complaint = await done.communicate()
        assert (done.returncode, complaint) == (0, b"")
        (span,) = running.wait(lambda seen: seen)
        assert (span.service, span.name, span.attributes) == ("reside", "reside account list", {})
        running.status = 403
        done = await subprocess.create_subprocess_exec(
            *command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        _, complaint = await done.communicate()
        assert done.returncode == 0
        assert complaint.decode().strip() == (
            "warning: not all spans could be sent to the address in OTEL_EXPORTER_OTLP_ENDPOINT"
        )
