"""`reside doctor`: each check has a deadline, none stops the others, and findings say what to do."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from reside.cli import cluster_checks, config, findings, machine_checks, main
from reside.cli.accounts import create_account
from reside.cli.doctor import line
from reside.cli.findings import Check, Finding, examine, in_thread
from reside.local import Toolchain
from reside.model.alpha_contract import SUPER_ADMIN_PERMISSIONS
from reside.model.errors import NotAllowed, NotReady

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio
GIB = 1 << 30
NOW = datetime(2026, 11, 25, tzinfo=UTC)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESIDE_CONFIG", str(tmp_path))
    monkeypatch.setattr("reside.cli.keyrings.keyring_works", lambda: False)


async def hangs() -> Finding:
    await asyncio.Event().wait()
    raise AssertionError


async def refused() -> Finding:
    raise NotReady("Jazz can't be reached at ws://x: closed")


async def broken() -> Finding:
    raise KeyError("bug")


async def fine() -> Finding:
    return Finding("ok", "fine", "it is")


async def test_checks_that_hang_or_raise_fail_and_the_others_go_on() -> None:
    checks = [Check("hangs", hangs), Check("refused", refused), Check("broken", broken), Check("fine", fine)]
    late, away, bug, well = await examine(checks, 0.05)
    assert (late.status, late.what) == ("failed", "no answer within 0.05 s")
    assert (away.status, away.check) == ("failed", "refused")
    assert away.cure.startswith("check the network, and whether")
    assert (bug.status, bug.what, bug.cure) == ("failed", "unexpected KeyError: 'bug'", "report this bug")
    assert well == Finding("ok", "fine", "it is")


async def test_a_function_that_blocks_is_given_up_at_the_deadline() -> None:
    release = threading.Event()

    def blocks() -> Finding:
        release.wait(60)
        return Finding("ok", "keyring", "late")

    (found,) = await examine([Check("keyring", lambda: in_thread(blocks))], 0.05)
    release.set()
    assert found == findings.late("keyring", 0.05)
    with pytest.raises(KeyError):
        await in_thread(lambda: {}["x"])


class Usage(NamedTuple):
    """The part of a disk's usage that is read."""

    free: int


@pytest.mark.parametrize(("free", "status"), [(GIB - 1, "failed"), (GIB, "warning"), (5 * GIB, "ok")])
def test_the_folder_with_the_least_free_space_counts(
    free: int, status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {tmp_path: free, tmp_path.parent: 50 * GIB}
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(sizes[path]))
    found = machine_checks.disk(sizes)
    assert found.status == status
    assert str(tmp_path) in found.what


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("MemTotal: 1 kB\nMemAvailable:  524288 kB\n", "ok"),
        ("MemAvailable: 524287 kB\n", "warning"),
        ("MemTotal: 1 kB\n", "ok"),
    ],
)
def test_memory_is_a_warning_while_little_is_available(text: str, status: str, tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text(text)
    assert machine_checks.memory(tmp_path / "meminfo").status == status
    assert machine_checks.memory(tmp_path / "absent").what == "not known on this system"


def test_missing_programs_are_a_warning_with_the_command_that_installs_them(tmp_path: Path) -> None:
    found = machine_checks.toolchain(Toolchain(str(tmp_path)))
    assert found.status == "warning"
    assert "run `make tools`" in found.what


@pytest.mark.parametrize(
    ("left", "status"), [(timedelta(seconds=-1), "failed"), (timedelta(days=13), "warning"), (timedelta(days=14), "ok")]
)
def test_the_certificate_that_ends_first_counts(left: timedelta, status: str) -> None:
    found = cluster_checks.certificates({"the user": NOW + left, "the API": NOW + timedelta(days=900)}, NOW)
    assert found.status == status
    assert "the user" in found.what
    assert bool(found.cure) == (status != "ok")


@pytest.mark.parametrize(
    ("date", "skew"),
    [("Wed, 25 Nov 2026 00:01:00 GMT", -60.0), ("Tue, 24 Nov 2026 23:59:30 GMT", 30.0), ("soon", None), (None, None)],
)
def test_clocks_are_compared_by_the_date_of_an_answer(date: str | None, skew: float | None) -> None:
    assert cluster_checks.skew_of(date, NOW) == skew


def test_a_leader_is_known_by_its_metric() -> None:
    page = "# HELP reside_alpha_leader 1 while\nreside_alpha_leader 1.0\nreside_alpha_leader_x 0.0\n"
    assert cluster_checks.metric_of(page, "reside_alpha_leader") == 1
    assert cluster_checks.metric_of(page, "reside_sentinel_leader") is None


@pytest.mark.parametrize(
    ("values", "status", "what"),
    [
        ([0.0, 1.0], "ok", "one of 2 pods"),
        ([0.0, 0.0], "failed", "none of 2 pods"),
        ([], "failed", "no pod answers"),
        ([None], "warning", "it is of an earlier release, and does not tell"),
    ],
)
def test_one_pod_of_a_replica_must_lead(values: list[float | None], status: str, what: str) -> None:
    found = cluster_checks.judge_leader("alpha", values)
    assert (found.check, found.status, found.what) == ("alpha leads", status, what)


def test_an_account_without_any_permission_is_a_warning_with_the_grant() -> None:
    assert cluster_checks.rights("co_z1", list(SUPER_ADMIN_PERMISSIONS)).what == "all of a super admin on Alpha"
    assert cluster_checks.rights("co_z1", ["replica:read:all"]).status == "ok"
    none = cluster_checks.rights("co_z1", [])
    assert (none.status, "reside permission grant co_z1 alpha" in none.cure) == ("warning", True)


def test_a_cluster_of_another_release_is_a_warning_with_the_upgrade() -> None:
    running = {"alpha": "sha256:" + "a" * 64, "kubernetes-sentinel": "sha256:" + "b" * 64}
    same = {name: f"registry/{name}@{digest}" for name, digest in running.items()}
    assert cluster_checks.release_of(running, same).status == "ok"
    assert "built no images to compare" in cluster_checks.release_of(running, None).what
    other = cluster_checks.release_of(running, same | {"alpha": "registry/alpha@sha256:" + "c" * 64})
    assert (other.status, other.what) == ("warning", "the cluster has another alpha than this machine's release")
    assert "reside cluster upgrade" in other.cure


async def test_the_release_is_not_compared_without_the_right_to_read_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unreadable:
        def __init__(self, *_: object) -> None: ...

        async def rows(self) -> list[Any]:
            raise NotAllowed("replicas can't be read: the account needs replica:read:all")

    monkeypatch.setattr(cluster_checks, "ReplicaView", Unreadable)
    found = await cluster_checks.release(SimpleNamespace(node=None, data=None))  # type: ignore[arg-type] # it is not read
    assert (found.status, found.what.partition(": ")[0]) == ("warning", "not compared")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, dict[str, Any]], str]:
    code = main.run(["doctor", "--output", "json", *arguments])
    printed = capsys.readouterr()
    return code, {each["check"]: each for each in json.loads(printed.out)}, printed.err


def test_without_a_cluster_the_machine_is_checked_and_the_way_to_one_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, found, _ = run(capsys)
    assert set(found) == {"toolchain", "disk", "memory", "configuration", "account"}
    assert (found["account"]["status"], found["account"]["what"]) == ("warning", "no cluster is configured")


def test_a_cluster_that_is_away_fails_its_checks_and_the_exit_code_is_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    create_account("admin")
    cluster = config.Cluster(
        name="far", endpoint="https://127.0.0.1:1", alpha_replica_id="co_zAlpha", access="endpoint"
    )
    config.change(lambda current: current.with_cluster(cluster, "admin"))
    code, found, err = run(capsys, "--deadline", "1")
    away = ["domain and clock", "certificates", "jazz and alpha"]
    assert code == 1
    assert [found[name]["status"] for name in away] == ["failed"] * 3
    assert found["domain and clock"]["cure"]
    assert found["jazz and alpha"]["cure"]
    assert ", ".join(away) in " ".join(err.split())


def test_the_configuration_must_be_private_and_the_account_decryptable(tmp_path: Path) -> None:
    create_account("admin")
    cluster = config.Cluster(name="far", namespace="far", alpha_replica_id="co_zAlpha")
    config.change(lambda current: current.with_cluster(cluster, "admin"))
    path = tmp_path / "config.yaml"
    assert machine_checks.configuration().what == f"{path}, clusters: 1, accounts: 1, current context: far"
    path.chmod(0o640)
    assert machine_checks.configuration().cure == f"chmod 600 {path}"
    assert machine_checks.account(None).what == "admin can be used; the key of its secret is in a file"
    (tmp_path / "secrets.key").unlink()
    found = machine_checks.account("far")
    assert (found.status, "restore the former key" in found.what) == ("failed", True)


def test_an_unknown_context_and_a_damaged_file_are_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found, _ = run(capsys, "--context", "nowhere")
    assert (code, found["account"]["status"]) == (1, "failed")
    (tmp_path / "config.yaml").write_text("[")
    code, found, _ = run(capsys)
    assert (code, found["configuration"]["status"]) == (1, "failed")


def test_a_line_has_the_cure_after_the_fault() -> None:
    assert line(Finding("failed", "disk", "0.5 GiB are free", "free disk space")) == "0.5 GiB are free: free disk space"
    assert line(Finding("ok", "disk", "fine")) == "fine"
