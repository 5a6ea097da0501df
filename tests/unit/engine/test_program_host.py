"""The error that an engine gets for a program that could not run."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest
from pulumi.runtime.proto import language_pb2, language_pb2_grpc

from reside.sentinel.engine.program_host import ProgramHost
from reside.sentinel.engine.resources import ProviderSettings, declare_stack
from reside.sentinel.engine.runner import Program

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def host() -> Iterator[ProgramHost]:
    programs = ProgramHost(parallel=1)
    yield programs
    programs.close()


def program(document: str) -> Program:
    """Return a program of the stack `demo`, whose events nobody reads."""
    return Program("demo", document, lambda _event: None, Path("unused"))


def run(host: ProgramHost, monitor: str) -> language_pb2.RunResponse:
    """Run the program of the stack `demo`, as an engine does."""
    with grpc.insecure_channel(host.address) as channel:
        request = language_pb2.RunRequest(project="reside", stack="demo", monitor_address=monitor)
        return language_pb2_grpc.LanguageRuntimeStub(channel).Run(request)


def test_a_program_that_can_not_reach_its_engine_fails(host: ProgramHost) -> None:
    """An engine deletes what a successful program did not register."""
    host.serve(program(declare_stack("demo", [], ProviderSettings("4.25.0", "demo")).encode()))
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        answer = run(host, f"127.0.0.1:{nobody.getsockname()[1]}")
    assert answer.error == "the engine ended before it accepted all objects of the stack"


def test_a_stack_without_an_operation_has_no_program(host: ProgramHost) -> None:
    assert run(host, "127.0.0.1:1").error == "no operation on stack demo is running here"


def test_an_invalid_declaration_is_an_error_and_not_an_empty_program(host: ProgramHost) -> None:
    host.serve(program('{"resources": []}'))
    error = "the declaration of the stack is invalid: Value error, the first resource is not the stack"
    assert run(host, "127.0.0.1:1").error == error
