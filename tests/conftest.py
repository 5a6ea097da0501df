"""Fixtures and settings of all tests: the event loop, and the toolchain first on PATH."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from hypothesis import settings

_TOOLS = Path(__file__).parent.parent / ".tools" / "bin"
os.environ["PATH"] = f"{_TOOLS}{os.pathsep}{os.environ['PATH']}"


settings.register_profile("no deadline", deadline=None)  # no test asserts a duration, because the machine may be busy
settings.load_profile("no deadline")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run all asynchronous tests on asyncio, as the programs do."""
    return "asyncio"


_ORDER = ("e2e", "integration", "interop", "unit")
_BRINGING_UP = (
    "test_bootstrap.py",
    "test_existing_cluster.py",
    "test_killed_bootstraps.py",
    "test_restore.py",
    "test_root_program.py",
)
"""End-to-end tests on their own empty Kubernetes, which run in parallel with those that share one platform."""


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the slowest tests first, and group those that share fixtures in one worker (`--dist loadgroup`).

    The end-to-end tests that share one platform, or one empty Kubernetes, are one group; so are the resident engine's
    on one control plane; any other file of tests on real parts is a group.
    """
    items.sort(key=lambda item: _ORDER.index(_suite(item)))
    for item in items:
        group = _group(item)
        if group is not None:
            item.add_marker(pytest.mark.xdist_group(group))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Freeze what the collection has made.

    Each full collection of garbage would look at half a million objects that live as long as the session: a tenth of
    the CPU time of tests that run everything in their own process.
    """
    gc.collect()
    gc.freeze()


def _group(item: pytest.Item) -> str | None:
    suite, *folders, name = item.path.relative_to(Path(__file__).parent).parts
    if suite == "unit":
        return None
    if suite == "e2e" and name != "test_embedded_kubernetes.py":
        return "bringing up" if name in _BRINGING_UP else "e2e"
    if suite == "integration" and folders == ["resident"]:
        return "resident equivalence" if name.startswith("test_equivalence") else "resident"
    return "/".join([suite, *folders, name])


def _suite(item: pytest.Item) -> str:
    return item.path.relative_to(Path(__file__).parent).parts[0]
