"""What an engine is told about a program that could not run."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import grpc
import pytest
from pulumi.runtime.proto import language_pb2, language_pb2_grpc

from reside.sentinel.engine.host import ProgramHost
from reside.sentinel.engine.resources import ProviderSettings, resources

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def host() -> Iterator[ProgramHost]:
    programs = ProgramHost(parallel=1)
    yield programs
    programs.close()


def run(host: ProgramHost, monitor: str) -> language_pb2.RunResponse:
    """What an engine gets for having the program of the stack ``demo`` run."""
    with grpc.insecure_channel(host.address) as channel:
        request = language_pb2.RunRequest(project="reside", stack="demo", monitor_address=monitor)
        return language_pb2_grpc.LanguageRuntimeStub(channel).Run(request)


def test_a_program_that_does_not_reach_its_engine_did_not_succeed(host: ProgramHost) -> None:
    """An engine deletes what a program did not declare."""
    host.serve("demo", resources([], ProviderSettings("4.25.0", "demo")))
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        answer = run(host, f"127.0.0.1:{nobody.getsockname()[1]}")
    assert answer.error == "the engine took no more of the stack's objects"


def test_a_stack_without_an_operation_has_no_program(host: ProgramHost) -> None:
    assert run(host, "127.0.0.1:1").error == "no operation on stack demo is running here"
