"""The Python sync server instead of the official one, for tests of other folders that are imported here."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.jazz_python_server import PythonJazzServer, python_jazz_server


@pytest.fixture(scope="session")
def python_jazz(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PythonJazzServer]:
    """Yield a running Python server."""
    with python_jazz_server(tmp_path_factory.mktemp("python-jazz")) as server:
        yield server


@pytest.fixture
def jazz(python_jazz: PythonJazzServer) -> PythonJazzServer:
    """Return the server under the name by which tests know the official one."""
    return python_jazz


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PythonJazzServer]:
    """Yield a server that only this test uses, and kills."""
    with python_jazz_server(tmp_path) as started:
        yield started
