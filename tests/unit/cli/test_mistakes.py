"""Each mistake at the command line ends with one clear message, a documented exit code, and no traceback.

The table has the mistakes that need no cluster. tests/integration/alpha/test_mistakes.py has those that Alpha answers,
and test_process_mistakes.py those of signals, pipes and terminals.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
import stamina
import stamina.instrumentation
import structlog
from support.command_mistakes import check_mistake

from reside.cli import config, library_logs, main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOBODY = 65534
KEY = base64.b64encode(bytes(32)).decode()
ACCOUNT = {"name": "admin", "accountId": "co_zAdmin", "encryptedAgentSecret": "c2VjcmV0"}


def configured(folder: Path, **members: Any) -> None:
    """Write a configuration with one cluster, account and context, and these members in place of its own."""
    cluster = {"name": "east", "namespace": "reside", "alphaReplicaId": "co_zAlpha"}
    document = {
        "currentContext": "east",
        "contexts": [{"name": "east", "cluster": "east", "account": "admin"}],
        "clusters": [cluster],
        "accounts": [ACCOUNT],
    }
    (folder / "config.yaml").write_text(json.dumps(document | members))


def file(name: str, content: str | bytes, mode: int = 0o600) -> Callable[[Path], None]:
    """Return a preparation that writes a file."""

    def prepare(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(mode)

    return prepare


def folder_at(name: str) -> Callable[[Path], None]:
    """Return a preparation that makes a folder."""
    return lambda folder: (folder / name).mkdir(parents=True)


def both(*preparations: Callable[[Path], None]) -> Callable[[Path], None]:
    """Return preparations as one."""

    def prepare(folder: Path) -> None:
        for each in preparations:
            each(folder)

    return prepare


def kubeconfig(**members: Any) -> Callable[[Path], None]:
    """Return a preparation that writes a kubeconfig `kube` with the context `here`, and a cluster of the same name."""
    document = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "clusters": [{"name": "here", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "me", "user": {"token": "t"}}],
    }

    def prepare(folder: Path) -> None:
        (folder / "kube").write_text(json.dumps(document | members))

    return prepare


@dataclass(frozen=True)
class Mistake:
    """A command that is given in a wrong way.

    Attributes:
        line: its arguments; `{folder}` stands for the test's folder, which is also that of the configuration.
        says: a pattern of the message.
        code: the exit code.
        prepare: makes what is wrong.
        environment: variables of the environment.
        by_nobody: whether a user runs it who may read and write nothing here.
    """

    line: str
    says: str
    code: int = 1
    prepare: Callable[[Path], None] = lambda folder: None
    environment: tuple[tuple[str, str], ...] = ()
    by_nobody: bool = False


USAGE = (
    Mistake("nonsense", r"no such command 'nonsense': see `reside --help`", 2),
    Mistake("replicas", r"no such command 'replicas'\. Did you mean 'replica'\? See `reside --help`", 2),
    Mistake("replica lod image", r"no such command 'lod'\. Did you mean 'load'", 2),
    Mistake("replica load", r"missing argument 'image': see `reside replica load --help`", 2),
    Mistake("replica list --output nonsense", r"invalid value for '--output' / '-o': .*nonsense", 2),
    Mistake("cluster info -o nonsense", r"invalid value for '--output' / '-o': .*nonsense", 2),
    Mistake("replica list --outptu json", r"no such option: --outptu.*--output", 2),
    Mistake("replica list extra", r"extra argument", 2),
    Mistake("replica list --context", r"--context.* requires an argument", 2),
    Mistake("request show one", r"invalid value for 'ID': .*valid integer.*: see `reside request show --help`", 2),
    Mistake("request reject 1", r"missing option '--reason'", 2),
    Mistake("replica load image --canary 100", r"invalid value for '--canary': .*less than or equal to 99: see", 2),
    Mistake("replica logs greeter --tail 0", r"invalid value for '--tail': .*greater than or equal to 1: see", 2),
    Mistake("doctor --deadline soon", r"invalid value for '--deadline': .*valid number", 2),
    Mistake("completion csh", r"invalid value for 'shell': 'csh' is not one of 'bash', 'zsh', 'fish': see", 2),
    Mistake("state reassign --to ada", r"missing option '--from'", 2),
    Mistake("new folder --kind service", r"invalid value for '--kind': .*service", 2),
)
NAMES = (
    Mistake("replica load greeter", "image 'greeter': it has no registry host: write the full name, such as"),
    Mistake("request create ''", "image '': it has no registry host: write the full name, such as"),
    Mistake("replica list", "no cluster is configured: create one with `make up`"),
    Mistake("request list", "no cluster is configured"),
    Mistake("state prune", "no cluster is configured"),
    Mistake(
        "replica list --context west", r"context 'west' is not in .*config.yaml \(known: east\)", prepare=configured
    ),
    Mistake("cluster info west", r"cluster 'west' is not in .* \(known: east\): create it", prepare=configured),
    Mistake("cluster use west", r"context 'west' is not in", prepare=configured),
    Mistake(
        "replica list",
        r"account 'admin' is not in .* \(known: none\): create it with `reside account create`",
        prepare=lambda folder: configured(folder, accounts=[]),
    ),
    Mistake(
        "replica list",
        r"cluster 'east' is not in .* \(known: none\): create it",
        prepare=lambda folder: configured(folder, clusters=[]),
    ),
    Mistake("account create admin", "account 'admin' exists already: choose another name", prepare=configured),
    Mistake("account create ''", "the name of an account can't be empty"),
    Mistake(f"account create {'x' * 101}", "x' can't be the name of an account: choose one of at most 100 printable"),
    Mistake("cluster bootstrap ''", "'' can't be the name of a cluster: choose one of letters, digits"),
    Mistake("cluster bootstrap ../other", "'../other' can't be the name of a cluster: choose one of letters, digits"),
    Mistake("cluster add a/b https://127.0.0.1:1", "'a/b' can't be the name of a cluster: choose one of letters"),
    Mistake(
        "cluster claim-super-admin-access --cluster a/b --namespace east",
        "'a/b' can't be the name of a cluster: choose one of letters",
    ),
    Mistake("explain runing", "nothing is known about 'runing', perhaps you mean running"),
    Mistake("local logs etcd", "There is no local cluster 'default' in .*: run `reside local up` first"),
    Mistake("local info --name other", "There is no local cluster 'other' in .*: run `reside local up` first"),
    Mistake("local up --name Bad_Name", "'Bad_Name' is not a valid name of a local cluster: use at most"),
    Mistake("cluster add east ftp://x", "'ftp://x' is not the domain of a cluster: use HOST"),
    Mistake("cluster add west reside.example.org --alpha alpha", "'alpha' is not the id of an account: see"),
    Mistake(
        "cluster add east reside.example.org --alpha co_zOther",
        r"has another cluster east \(namespace reside\): choose another name",
        prepare=configured,
    ),
    Mistake("cluster claim-super-admin-access --namespace x", "--cluster is missing", prepare=configured),
    Mistake("new {folder}/Bad_Name", "Bad_Name.*--name gives another name"),
    Mistake("new {folder}/greeter --registry https://x", "registry 'https://x' is invalid: use a host and a path"),
)
FILES = (
    Mistake("new {folder}/file", "is a file: name a folder that does not exist yet", prepare=file("file", "")),
    Mistake("new {folder}/full", "is not empty: name a folder", prepare=file("full/a", "")),
    Mistake("build {folder}/absent", "absent is not a folder: name one that contains replica.yaml or contract.yaml"),
    Mistake("build {folder}", "contains neither replica.yaml and contract.yaml: it must contain exactly one"),
    Mistake("build {folder}", "replica.yaml is not YAML", prepare=file("replica.yaml", "a: [")),
    Mistake("build {folder}", "replica.yaml is not YAML: .*codec", prepare=file("replica.yaml", b"\xff\xfe\x00")),
    Mistake("build {folder}", "contract.yaml contains no manifest", prepare=file("contract.yaml", "text")),
    Mistake("build {folder}", "contract.yaml: ", prepare=file("contract.yaml", "identity: x\nmore: 1")),
    Mistake("cluster manifest --images {folder}/absent", "absent does not exist: build the images with `make up`"),
    Mistake("cluster manifest --images {folder}/i", "i is not JSON", prepare=file("i", "{")),
    Mistake("cluster manifest --images {folder}/i", "i is not a JSON object", prepare=file("i", "[]")),
    Mistake("cluster manifest --images {folder}/i", r"options: images\.alpha: ", prepare=file("i", "{}")),
    Mistake("cluster manifest --policy {folder}/absent", "absent can't be read: No such file"),
    Mistake("cluster manifest --registry-mirror x", "'x' is not HOST=ADDRESS: name the host and"),
    Mistake("cluster manifest --registry-ca x", "'x' is not HOST=FILE: name the host and a PEM file"),
    Mistake("cluster manifest --ingress-annotation x", "'x' is not NAME=VALUE: name the annotation"),
    Mistake("cluster manifest --registry-config {folder}/absent", "absent can't be read: No such file"),
    Mistake(
        "cluster manifest --registry-config {folder}/f", "f is not JSON: name a config.json", prepare=file("f", "x")
    ),
    Mistake("cluster bootstrap c --local x --kube-context y", "--local can't be combined with"),
    Mistake(
        "state import greeter {folder}/absent", "absent: No such file or directory: check the path", prepare=configured
    ),
)
VALUES = (
    Mistake(
        "permission grant ada greeter", "name a replica and a permission, or give --super-admin", prepare=configured
    ),
    Mistake("request approve 1 --choose greeting", "'greeting' is not KEY=REPLICA: name a requirement and ids"),
    Mistake("replica load ghcr.io/acme/hello --health-deadline -1", "--health-deadline and --min-ready: .*"),
    Mistake(
        "cluster backup {folder}/b", "there is no passphrase: set RESIDE_BACKUP_PASSPHRASE, or", prepare=configured
    ),
    Mistake(
        "cluster backup {folder}/b",
        "fewer than 8 characters: choose a longer one",
        prepare=configured,
        environment=(("RESIDE_BACKUP_PASSPHRASE", "short"),),
    ),
    Mistake(
        "cluster backup {folder}/b",
        "RESIDE_BACKUP_PASSPHRASE is not UTF-8",
        prepare=configured,
        environment=(("RESIDE_BACKUP_PASSPHRASE", os.fsdecode(b"gr\xfc\xdfe an alle")),),
    ),
    Mistake("cluster backup {folder}/b --passphrase-file {folder}/no", "no can't be read", prepare=configured),
    Mistake(
        "cluster backup {folder}/b --passphrase-file {folder}/p",
        "p can't be read: .*utf-8",
        prepare=both(configured, file("p", b"\xff\xfe")),
    ),
    Mistake("cluster delete --namespace reside", "no terminal to confirm the deletion: use --yes|kubeconfig"),
    Mistake(
        "build {folder} --push",
        "RESIDE_REGISTRY_MIRRORS must be JSON such as",
        prepare=file("contract.yaml", "identity: registry.reside.internal/contracts/a.v1"),
        environment=(("RESIDE_REGISTRY_MIRRORS", "nonsense"),),
    ),
    Mistake(
        "build {folder} --push",
        "registry.reside.internal|127.0.0.1:1",
        prepare=file("contract.yaml", "identity: registry.reside.internal/contracts/a.v1"),
        environment=(("RESIDE_REGISTRY_MIRRORS", '{"registry.reside.internal": "127.0.0.1:1"}'),),
    ),
)
CONFIGURATION = (
    Mistake(
        "account list", "config.yaml can't be read: Is a directory: .*RESIDE_CONFIG", prepare=folder_at("config.yaml")
    ),
    Mistake("account list", "config.yaml is not YAML: ", prepare=file("config.yaml", "accounts: [")),
    Mistake(
        "account list", "config.yaml is not UTF-8: correct it, restore a copy", prepare=file("config.yaml", b"\xff")
    ),
    Mistake("account list", "not a valid ReSide configuration: file: ", prepare=file("config.yaml", "- a")),
    Mistake(
        "account list",
        "not a valid ReSide configuration: apiVersion: .*the later release that has written it",
        prepare=lambda folder: configured(folder, apiVersion="v9"),
    ),
    Mistake(
        "account list", "config.yaml can't be read: Not a directory", environment=(("RESIDE_CONFIG", "/dev/null"),)
    ),
    Mistake("account list", "config.yaml can't be read: Permission denied", prepare=configured, by_nobody=True),
    Mistake("account create ada", "can't be read: Permission denied: .*RESIDE_CONFIG", by_nobody=True),
    Mistake("account create ada", "can't be written: .*RESIDE_CONFIG", environment=(("RESIDE_CONFIG", "/proc/none"),)),
    Mistake("account create ada", "other users may read .*: run `chmod 600", prepare=file("secrets.key", KEY, 0o644)),
    Mistake("account create ada", "the key of this user.* is damaged", prepare=file("secrets.key", "c2hvcnQ=")),
    Mistake("account create ada", "secrets.key is damaged", prepare=file("secrets.key", b"\xff\xfe")),
    Mistake(
        "replica list",
        "account 'admin' can't be decrypted with this user's key: restore the former key",
        prepare=both(configured, file("secrets.key", KEY)),
    ),
)
KUBERNETES = (
    Mistake("cluster delete --yes --kubeconfig {folder}/absent", "absent can't be used: .*not found"),
    Mistake(
        "cluster delete --yes --kubeconfig {folder}",
        "can't be used: .* not found: name the right one with --kubeconfig or KUBECONFIG",
    ),
    Mistake("cluster delete --yes --kubeconfig {folder}/kube", "kube is not YAML", prepare=file("kube", "a: [")),
    Mistake("cluster delete --yes --kubeconfig {folder}/kube", "kube is not a kubeconfig", prepare=file("kube", "[]")),
    Mistake("cluster delete --yes --namespace x", "the default kubeconfig can't be used: .*not found.*--kubeconfig"),
    Mistake(
        "cluster delete --yes --kubeconfig {folder}/kube --kube-context there",
        r"context 'there' is not in kubeconfig .*kube \(known: here\): choose one",
        prepare=kubeconfig(),
    ),
    Mistake(
        "cluster delete --yes --kubeconfig {folder}/kube",
        "Kubernetes at https://127.0.0.1:1 can't be reached: ",
        prepare=kubeconfig(),
    ),
    Mistake(
        "cluster delete --yes --kubeconfig {folder}/kube",
        "is not a kubeconfig, or its context names a cluster or user that it does not define",
        prepare=kubeconfig(clusters=[]),
    ),
    Mistake(
        "cluster delete --yes",
        "cluster far is reached by its domain alone: run it on a machine that has a kubeconfig",
        prepare=lambda folder: configured(
            folder,
            contexts=[{"name": "east", "cluster": "far", "account": "admin"}],
            clusters=[
                {"name": "far", "endpoint": "https://far.example", "alphaReplicaId": "co_zA", "access": "endpoint"}
            ],
        ),
    ),
)
TABLE = (*USAGE, *NAMES, *FILES, *VALUES, *CONFIGURATION, *KUBERNETES)


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a home, a configuration and a state of its own to each test."""
    for variable in ("KUBECONFIG", "XDG_CONFIG_HOME", "RESIDE_REGISTRY_MIRRORS", "RESIDE_BACKUP_PASSPHRASE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RESIDE_CONFIG", str(tmp_path))
    monkeypatch.setenv("RESIDE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("RESIDE_LOCAL_STATE", str(tmp_path / "local"))
    monkeypatch.setattr("reside.cli.keyrings.keyring_works", lambda: False)


@pytest.fixture(autouse=True)
def one_attempt() -> Iterator[None]:
    """Let what is retried for a while fail at once, and log as in the command's process."""
    stamina.set_testing(True, attempts=1)
    library_logs.want()
    yield
    library_logs.want(wanted=False)
    stamina.set_testing(False)
    stamina.instrumentation.set_on_retry_hooks(None)
    structlog.reset_defaults()


@contextmanager
def as_nobody() -> Iterator[None]:
    """Run the block as a user without rights; root may read and write everything."""
    before = os.geteuid()
    if before != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


def test_the_table_is_long_and_has_no_mistake_twice() -> None:
    assert len(TABLE) >= 60
    assert len({(each.line, each.says) for each in TABLE}) == len(TABLE)


@pytest.mark.parametrize("mistake", TABLE, ids=lambda mistake: f"{mistake.line[:60]} - {mistake.says[:30]}")
def test_a_mistake_ends_with_one_message_and_a_documented_code(
    mistake: Mistake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mistake.prepare(tmp_path)
    for name, value in mistake.environment:
        monkeypatch.setenv(name, value)
    arguments = [part.replace("''", "").format(folder=tmp_path) for part in mistake.line.split()]
    if mistake.by_nobody:
        main.command(arguments)  # imports the command: nobody may not read this user's modules
        tmp_path.chmod(0o700)
        with as_nobody():
            code = main.run(arguments)
    else:
        code = main.run(arguments)
    printed = capsys.readouterr()
    check_mistake(code, printed.err, mistake.code, mistake.says)
    assert printed.out == ""


def test_a_configuration_that_another_command_holds_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(config, "_LOCK_WITHIN_S", 0.05)
    with (tmp_path / "config.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        code = main.run(["account", "create", "ada"])
    check_mistake(code, capsys.readouterr().err, 1, "another command has held .*config.lock for .*: end it")


class Answer(BaseHTTPRequestHandler):
    """Answers each request in the way that the server's `answer` says: a status and a text."""

    def do_GET(self) -> None:
        """Answer."""
        status, text = self.server.answer  # type: ignore[attr-defined]
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if text.startswith("{") else "text/html")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""


@pytest.mark.parametrize(
    ("status", "text", "says"),
    [
        (
            401,
            '{"kind": "Status", "code": 401, "message": "Unauthorized"}',
            "user 'me' of .* is not accepted .*: get new",
        ),
        (403, '{"kind": "Status", "code": 403, "message": "x is forbidden: User \\"me\\""}', "ask an administrator"),
        (502, "<html>Bad Gateway</html>", "can't be reached: .*: check that it runs"),
    ],
)
def test_what_a_kubernetes_refuses_is_told_with_the_cure(
    status: int, text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        server.answer = (status, text)  # type: ignore[attr-defined]
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        kubeconfig(clusters=[{"name": "here", "cluster": {"server": address}}])(tmp_path)
        code = main.run(["cluster", "delete", "--yes", "--kubeconfig", str(tmp_path / "kube")])
        server.shutdown()
    check_mistake(code, capsys.readouterr().err, 1, f"Kubernetes at {address}.*{says}")


def test_a_user_without_a_home_is_told_to_name_a_folder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("RESIDE_CONFIG")
    monkeypatch.setattr(Path, "home", no_home)
    code = main.run(["account", "list"])
    check_mistake(code, capsys.readouterr().err, 1, "this user has no home folder: name a folder in RESIDE_CONFIG")
