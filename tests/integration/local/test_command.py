"""`python -m reside.local`, which is the same as `reside local`, as a user runs it."""

import json
import os
import signal
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


def test_a_control_plane_needs_no_privilege() -> None:
    state = fresh_state("plain")
    options = ["--name", "plain", "--state", str(state)]
    without = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-m", "reside.local"]
    try:
        command = [*without, "up", "--control-plane-only", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        pid = json.loads(reside_local("status", "-o", "json", *options).stdout)[0]["pid"]
        assert "CapEff:\t0000000000000000" in Path(f"/proc/{pid}/status").read_text()
        command = [*without, "down", "--delete-state", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
    finally:
        reside_local("down", "--delete-state", *options)


@pytest.mark.parametrize("last", ["certificates", "kube-apiserver"])
def test_an_interrupted_up_is_completed_by_the_next_one(last: str) -> None:
    state = fresh_state("killed")
    options = ["--name", "killed", "--state", str(state)]
    command = [sys.executable, "-u", "-m", "reside.local", "up", *options, "--control-plane-only"]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if last in line:
                    process.kill()
        assert process.returncode == -signal.SIGKILL
        assert reside_local("up", *options).returncode == 0
        assert reside_local("status", *options).returncode == 0
    finally:
        assert reside_local("down", "--delete-state", *options).returncode == 0


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


def test_the_exit_code_of_status_is_0_only_if_everything_runs(state: Path) -> None:
    of(state, "up", "--control-plane-only")
    done = of(state, "status", "-o", "json")
    assert done.returncode == 0
    pids = {item["name"]: item["pid"] for item in json.loads(done.stdout)}
    os.kill(pids["kube-controller-manager"], signal.SIGKILL)
    done = of(state, "status", "-o", "json")
    assert done.returncode == 1
    assert {item["name"]: item["state"] for item in json.loads(done.stdout)}["kube-controller-manager"] == "stopped"


def test_logs_prints_a_log_and_status_prints_where_logs_are(state: Path) -> None:
    of(state, "up", "--control-plane-only")
    assert f"Logs: {state}/logs/COMPONENT.log" in of(state, "status").stdout
    assert "options.go" in of(state, "logs", "kube-apiserver").stdout


def test_reside_local_is_the_same_command_and_tells_programs_what_it_does() -> None:
    state = fresh_state("programs")

    def run(*arguments: str, code: int = 0) -> str:
        command = [sys.executable, "-m", "reside.cli.main", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == code, done.stderr
        return done.stderr if code else done.stdout

    here = ("--name", "programs", "--state", str(state), "--output", "json")
    try:
        alone = ("local", "up", "--control-plane-only", *here)
        assert "can't have an ingress controller" in run(*alone, "--ingress", code=1)
        assert "nodes" in run(*alone, "--nodes", "2", code=1)
        up = json.loads(run(*alone))
        assert json.loads(run("local", "info", *here)) == up
        assert json.loads(run("local", "kubeconfig", *here))["kubeconfig"] == up["kubeconfig"]
        running = json.loads(run("local", "status", *here))
        assert {each["state"] for each in running} == {"running"}
        logs = ["local", "logs", "etcd", "--follow", "--name", "programs", "--state", str(state)]
        with subprocess.Popen(
            ["env", "--default-signal=INT", sys.executable, "-m", "reside.cli.main", *logs],
            stdout=subprocess.PIPE,
            start_new_session=True,
        ) as follower:
            assert follower.stdout is not None
            assert follower.stdout.readline()
            os.killpg(follower.pid, signal.SIGINT)
            assert follower.wait(30) == 130
    finally:
        down = run("local", "down", "--delete-state", *here)
    assert json.loads(down) == {"name": "programs", "deleted": True}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["logs", "kubelet"], "There is no component 'kubelet'"),
        (["info", "--name", "other"], "is the state of local cluster 'cli', not of 'other'"),
        (["info", "--state", "/nowhere/cli"], "There is no local cluster 'cli'"),
        (["status", "--name", "No Name"], "is not a valid name of a local cluster"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_1(state: Path, arguments: list[str], message: str) -> None:
    command, *rest = arguments
    done = reside_local(command, "--name", "cli", "--state", str(state), *rest)
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
