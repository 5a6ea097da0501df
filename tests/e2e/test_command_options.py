"""Options of commands whose effect only a whole cluster shows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from e2e.bootstraps import here
from support.eventually import eventually_sync

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)
ENDPOINT = "https://reside.example.org"


@pytest.fixture
def _granted(platform: Platform) -> Iterator[None]:
    """Let the operator read logs, and manage states."""
    permissions = ("logs:read", "state:manage")
    for permission in permissions:
        platform.reside("permission", "grant", "admin", "kubernetes-sentinel", permission)
    yield
    for permission in permissions:
        platform.reside("permission", "revoke", "admin", "kubernetes-sentinel", permission)


@pytest.mark.usefixtures("_granted")
def test_a_state_is_exported_to_a_file_and_to_standard_output(platform: Platform, tmp_path: Path) -> None:
    file = tmp_path / "greeter.json"
    said = eventually_sync(
        "the permission",
        lambda: platform.reside("state", "export", "greeter", "--file", str(file), check=False),
        lambda done: done.returncode == 0,
    )
    assert f"{file} has the state of stack greeter, with " in said.stdout
    assert file.stat().st_mode & 0o777 == 0o600, "it has encrypted secrets"
    state = json.loads(file.read_text())
    assert "Deployment" in json.dumps(state)
    printed = json.loads(platform.reside("state", "export", "greeter").stdout)
    assert _urns(printed) == _urns(state)


def _urns(state: dict[str, dict[str, list[dict[str, str]]]]) -> list[str]:
    return [resource["urn"] for resource in state["deployment"]["resources"]]


@pytest.mark.usefixtures("_granted")
def test_pods_and_logs_are_for_programs_too(platform: Platform) -> None:
    listed = eventually_sync(
        "the permission",
        lambda: platform.reside("replica", "pods", "greeter", "--output", "json", check=False),
        lambda done: done.returncode == 0,
    )
    (pod,) = json.loads(listed.stdout)
    assert pod["ready"] is True
    wide = platform.reside("replica", "pods", "greeter", "--wide").stdout
    assert "RESTARTS" in wide
    assert pod["node"] in wide
    (log,) = json.loads(platform.reside("replica", "logs", "greeter", "--output", "json").stdout)
    assert log["pod"] == pod["name"]


def test_a_cluster_gets_an_endpoint_for_clients_elsewhere(platform: Platform) -> None:
    """A bootstrap that changes nothing else notes it in the configuration; without the option, it is gone again."""
    name = json.loads(platform.reside("cluster", "info", "--output", "json").stdout)["name"]
    place = [each for each in here(platform) if each not in ("--namespace", platform.namespace)]
    done = platform.reside(
        "cluster", "bootstrap", name, *place, "--endpoint", ENDPOINT, "--output", "json", seconds=600
    )
    assert json.loads(done.stdout.splitlines()[-1])["event"] == "result"
    described = json.loads(platform.reside("cluster", "info", name, "--output", "json").stdout)
    assert described["endpoint"] == ENDPOINT
    platform.reside("cluster", "bootstrap", name, *place, seconds=600)
    described = json.loads(platform.reside("cluster", "info", name, "--output", "json").stdout)
    assert "endpoint" not in described
    assert "greeter" in platform.reside("replica", "list").stdout


def test_the_images_of_the_cluster_need_no_upgrade(platform: Platform) -> None:
    done = platform.reside("cluster", "upgrade", "--yes", "--output", "json", seconds=600)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[-1]["event"] == "result"
