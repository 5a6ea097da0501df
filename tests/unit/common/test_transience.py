"""Each error tree says which of its errors are transient; connections that fail are known, too."""

from __future__ import annotations

import errno
import importlib
import inspect

import httpx2
import pytest

from reside.access.errors import KubectlMissingError, PortForwardError
from reside.common.transience import is_expected, is_transient, safe_text
from reside.jazz import InvalidCredentials, JazzTimeout, JazzUnavailable, NodeClosed, ValueNotFound
from reside.locks import EtcdUnavailable, LockLost, LockTimeout
from reside.model.errors import Conflict, InvalidInput, NotAllowed, NotReady, ResideError
from reside.registry.errors import ImageNotFound, RegistryUnavailable
from reside.sentinel.engine.errors import ApplyConflict, ApplyRejected, EngineBroken, EngineKilled, EngineUnavailable
from reside.sentinel.engine.errors import StackLocked as EngineStackLocked
from reside.sentinel.errors import ClusterRefused, ClusterUnavailable, ForeignObjects, PolicyViolated

TREES = (
    "reside.access.errors",
    "reside.jazz.errors",
    "reside.jazz.typed.errors",
    "reside.locks.errors",
    "reside.model.errors",
    "reside.registry.errors",
    "reside.sentinel.engine.errors",
    "reside.sentinel.errors",
)

TRANSIENT = (
    NotReady("not yet"),
    JazzUnavailable("no server"),
    JazzTimeout("no answer"),
    EtcdUnavailable("no etcd"),
    LockTimeout("reside/a", "somebody"),
    LockLost("reside/a", "its lease ended"),
    RegistryUnavailable("image", "down"),
    PortForwardError("svc/alpha", "not up"),
    ClusterUnavailable("no API"),
    EngineUnavailable("no engine"),
    EngineKilled("ended"),
    EngineStackLocked("in use"),
    httpx2.ConnectError("refused"),
    httpx2.ReadTimeout("no answer"),
    ConnectionRefusedError(),
    TimeoutError(),
    OSError(errno.EHOSTUNREACH, "No route to host"),
)
PERMANENT = (
    ResideError("failed"),
    InvalidInput("wrong"),
    NotAllowed("no permission"),
    Conflict("changed"),
    NodeClosed("closed"),
    ValueNotFound("co_zA"),
    InvalidCredentials("wrong secret"),
    ImageNotFound("image", "none"),
    KubectlMissingError(),
    ClusterRefused("no", 403),
    ForeignObjects("of another"),
    PolicyViolated(("a rule",)),
    ApplyConflict("of another"),
    ApplyRejected("no"),
    EngineBroken("wrong passphrase"),
)
BUGS = (KeyError("a"), ZeroDivisionError(), OSError(errno.ENOSPC, "No space left on device"), FileNotFoundError())


@pytest.mark.parametrize("error", TRANSIENT, ids=lambda error: type(error).__name__)
def test_transient_errors_are_transient(error: Exception) -> None:
    assert is_transient(error)
    assert is_expected(error)


@pytest.mark.parametrize("error", PERMANENT, ids=lambda error: type(error).__name__)
def test_another_error_of_reside_needs_an_action(error: Exception) -> None:
    assert not is_transient(error)
    assert is_expected(error)


@pytest.mark.parametrize("error", BUGS, ids=lambda error: type(error).__name__)
def test_every_other_exception_is_a_bug(error: Exception) -> None:
    assert not is_transient(error)
    assert not is_expected(error)


@pytest.mark.parametrize("name", TREES)
def test_every_error_of_a_tree_declares_whether_it_is_transient(name: str) -> None:
    module = importlib.import_module(name)
    errors = [kind for _, kind in inspect.getmembers(module, inspect.isclass) if issubclass(kind, Exception)]
    assert errors
    assert [kind for kind in errors if not isinstance(getattr(kind, "transient", None), bool)] == []


def test_the_message_of_a_foreign_error_is_not_repeated() -> None:
    assert safe_text(NotReady("not yet")) == "not yet"
    assert safe_text(ValueError("password: hunter2")) == "ValueError"
    assert safe_text(httpx2.ConnectError("https://user:hunter2@host")) == "ConnectError"
