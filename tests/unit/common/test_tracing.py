"""Traces without a receiver: which environment enables them, what is accepted as a context, what is passed on."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from reside.common import tracing
from reside.common.traceparent import parse

if TYPE_CHECKING:
    from collections.abc import Iterator

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.fixture(autouse=True)
def off(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Record nothing, whatever the environment of the tests has."""
    monkeypatch.delenv(ENDPOINT, raising=False)
    yield
    tracing.disable(0)


@pytest.mark.parametrize(
    "value",
    [
        None,
        1,
        "",
        PARENT.upper(),
        PARENT + "\n",
        PARENT + "-more",
        PARENT.replace("00-", "01-", 1),
        "00-" + "0" * 32 + "-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-" + "0" * 16 + "-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333\u0663-01",
        {"traceparent": PARENT},
    ],
)
def test_only_a_traceparent_of_version_0_is_one(value: Any) -> None:
    assert parse(value) is None
    assert parse(PARENT) == PARENT


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({ENDPOINT: ""}, False),
        ({ENDPOINT: "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True),
        ({ENDPOINT: "http://collector:4318", "OTEL_SDK_DISABLED": "TRUE"}, False),
        ({ENDPOINT: "http://collector:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_the_variables_of_opentelemetry_decide_whether_spans_are_recorded(
    environment: dict[str, str], wanted: bool
) -> None:
    assert tracing.is_wanted(environment) is wanted


def test_without_a_recorder_a_span_passes_its_parent_on_and_begins_no_trace() -> None:
    with tracing.span("first") as first:
        first.set("reside.replica", "greeter")
        assert tracing.current() is None
        with tracing.span("second", "server", parent=PARENT), tracing.span("third", "client"):
            assert tracing.current() == PARENT
        assert tracing.current() is None


def test_a_step_without_a_cause_is_no_span() -> None:
    with tracing.step("step", None):
        assert tracing.current() is None
    with tracing.step("step", PARENT):
        assert tracing.current() == PARENT


def test_wrong_variables_of_opentelemetry_end_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "-1")
    tracing.enable("greeter")
    with tracing.span("span"):
        assert tracing.current() is None


def test_nothing_of_opentelemetry_is_imported_unless_it_is_used() -> None:
    code = (
        "import sys; import reside.replica.process, reside.cli.main; from reside.common import tracing;"
        "tracing.enable('one');"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env={})
    assert done.stdout == "[]\n"
