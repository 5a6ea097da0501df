"""Exit codes, errors of one line, JSON for programs, and no traceback for a user's mistake."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest

from reside.cli import config, main, output

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESIDE_CONFIG", str(tmp_path))
    monkeypatch.setenv("RESIDE_LOCAL_STATE", str(tmp_path / "local"))
    monkeypatch.setattr("reside.cli.keyrings.keyring_works", lambda: False)


@pytest.mark.parametrize("arguments", [["nonsense"], ["account", "create"], ["replica", "load"], ["replica", "--no"]])
def test_invalid_usage_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(arguments) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["replica", "list"], "no cluster is configured"),
        (["replica", "load", "ghcr.io/acme/hello"], "no cluster is configured"),
        (["cluster", "info", "other"], "cluster 'other' is not in"),
        (["cluster", "info"], "no cluster is configured"),
        (["cluster", "manifest", "--images", "/does/not/exist"], "/does/not/exist does not exist"),
        (["cluster", "bootstrap", "c", "--local", "x", "--kube-context", "y"], "--local can't be combined"),
        (["account", "create", " "], "the name of an account can't be empty"),
        (["account", "create", "a\nb"], r"'a\nb' can't be the name of an account: choose one of at most 100 printable"),
        (["cluster", "bootstrap", "a b"], "'a b' can't be the name of a cluster: choose one of letters, digits"),
    ],
)
def test_a_mistake_is_one_line_on_standard_error(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(arguments) == 1
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_an_account_is_created_listed_and_never_shown_with_its_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["account", "create", "joe"]) == 0
    capsys.readouterr()
    assert main.run(["account", "list", "--output", "json"]) == 0
    printed = capsys.readouterr().out
    assert [account["name"] for account in json.loads(printed)] == ["joe"]
    assert "ecret" not in printed
    assert "signerSecret" not in (tmp_path / "config.yaml").read_text()


def test_a_wide_list_of_accounts_names_the_contexts_that_use_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["account", "create", "joe"]) == 0
    contexts = [config.Context(name=name, cluster="team", account="joe") for name in ("team", "spare")]
    config.change(lambda found: found.model_copy(update={"contexts": tuple(contexts)}))
    capsys.readouterr()
    assert main.run(["account", "list"]) == 0
    assert "contexts" not in capsys.readouterr().out
    assert main.run(["account", "list", "--wide"]) == 0
    assert "team, spare" in capsys.readouterr().out
    assert main.run(["account", "list", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["contexts"] == ["team", "spare"]


def test_the_second_account_of_a_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["account", "create", "joe"]) == 0
    assert main.run(["account", "create", "joe"]) == 1
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize("elsewhere", [["--namespace", "n"], ["--kube-context", "x"], ["--local", "other"]])
def test_a_claim_elsewhere_must_name_its_cluster(elsewhere: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    known = config.Cluster(name="here", namespace="reside", alpha_replica_id="co_zAlpha")
    assert main.run(["account", "create", "admin"]) == 0
    config.change(lambda current: current.with_cluster(known, "admin"))
    assert main.run(["cluster", "claim-super-admin-access", *elsewhere]) == 1
    assert "--cluster is missing" in capsys.readouterr().err
    assert [*config.load().clusters] == [known]


def test_an_error_with_brackets_and_lines_is_printed_literally(capsys: pytest.CaptureFixture[str]) -> None:
    output.fail("first [bold]\n second")
    assert capsys.readouterr().err == "error: first [bold] second\n"


def test_every_command_of_the_specification_exists(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["account", "create"],
        ["account", "list"],
        ["cluster", "bootstrap"],
        ["cluster", "info"],
        ["cluster", "claim-super-admin-access"],
        ["cluster", "manifest"],
        ["replica", "load"],
        ["replica", "list"],
        ["build"],
        ["local", "up"],
    ):
        assert main.run([*arguments, "--help"]) == 0
    capsys.readouterr()


def test_clusters_are_listed_and_another_one_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["cluster", "list"]) == 0
    assert "no cluster: create one" in capsys.readouterr().err
    assert main.run(["account", "create", "admin"]) == 0
    for name in ("here", "there"):
        known = config.Cluster(name=name, namespace="reside", alpha_replica_id="co_zAlpha")
        config.change(lambda current, known=known: current.with_cluster(known, "admin"))  # type: ignore[misc]
    assert main.run(["cluster", "use", "here"]) == 0
    assert main.run(["cluster", "use", "nowhere"]) == 1
    capsys.readouterr()
    assert main.run(["cluster", "list"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == [["*", "here", "admin", "port-forward", "reside"], ["there", "admin", "port-forward", "reside"]]
    assert main.run(["cluster", "list", "--output", "name"]) == 0
    assert capsys.readouterr().out == "here\nthere\n"


@pytest.mark.parametrize("arguments", [[], ["replica"], ["replica", "list"], ["explain"], ["local", "up"]])
def test_the_short_option_prints_the_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([*arguments, "--help"]) == 0
    shown = capsys.readouterr().out
    assert main.run([*arguments, "-h"]) == 0
    assert capsys.readouterr().out == shown
    assert "-h" in shown


def test_the_short_option_for_help_may_be_the_value_of_another_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["permission", "clear", "ada", "--reason", "-h"]) == 1
    assert "no cluster is configured" in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out == f"reside {version('reside')}\n"
