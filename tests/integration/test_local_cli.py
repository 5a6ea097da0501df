"""`python -m reside.local` (the same as `reside local`) as a user runs it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clusters import fresh_state

Run = subprocess.CompletedProcess[str]


def reside_local(*arguments: str) -> Run:
    command = [sys.executable, "-m", "reside.local", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="module")
def state() -> Iterator[Path]:
    state = fresh_state("cli")
    yield state
    assert reside_local("down", "--delete-state", "--name", "cli", "--state", str(state)).returncode == 0


def of(state: Path, *arguments: str) -> Run:
    return reside_local(*arguments, "--name", "cli", "--state", str(state))


def test_up_shows_each_component_and_prints_where_the_kubeconfig_is(state: Path) -> None:
    done = of(state, "up", "--control-plane-only")
    assert done.returncode == 0, done.stderr
    for component in ("etcd", "kube-apiserver", "kube-controller-manager"):
        assert component in done.stdout
    assert f"KUBECONFIG={state}/kubeconfig" in done.stdout


def test_output_json_is_nothing_but_json(state: Path) -> None:
    up, info = of(state, "up", "-o", "json"), of(state, "info", "--output", "json")
    assert json.loads(up.stdout) == json.loads(info.stdout)
    assert json.loads(of(state, "kubeconfig", "-o", "json").stdout)["context"] == "reside-cli"


def test_status_tells_what_runs_by_its_exit_code(state: Path) -> None:
    of(state, "up", "--control-plane-only")
    assert of(state, "status").returncode == 0
    of(state, "down")
    done = of(state, "status", "-o", "json")
    assert done.returncode == 1
    assert {item["state"] for item in json.loads(done.stdout)} == {"stopped"}


def test_logs_prints_a_log(state: Path) -> None:
    of(state, "up", "--control-plane-only")
    assert "options.go" in of(state, "logs", "kube-apiserver").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["logs", "kubelet"], "There is no component 'kubelet'"),
        (["info", "--name", "other"], "is the state of local cluster 'cli', not of 'other'"),
        (["info", "--state", "/nowhere/cli"], "There is no local cluster 'cli'"),
        (["status", "--name", "No Name"], "is no name for a local cluster"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_1(state: Path, arguments: list[str], message: str) -> None:
    of(state, "up", "--control-plane-only")
    command, *rest = arguments
    done = reside_local(command, "--name", "cli", "--state", str(state), *rest)
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
