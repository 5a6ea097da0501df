"""The operator's configuration: contexts, clusters and accounts, in `config.yaml` (docs/model.md, section 9).

Invariants: the file has mode 0600 and is replaced atomically, so that a reader never sees a partial file; commands that
change it at the same time wait for each other, so that no change is lost; it contains agent secrets only in encrypted
form (`reside.cli.vault`); names are unique within their list.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from reside.common.files import write_private
from reside.common.validation import describe_faults
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Access = Literal["direct", "port-forward", "endpoint"]
"""By addresses of Services, by port-forward through the Kubernetes API, or by the cluster's domain alone."""

_ENDPOINT: Final = re.compile(r"https://[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?")
_DAMAGED: Final = "correct it, restore a copy, or move it away to start without a configuration"
_LOCK_WITHIN_S: Final = 10.0
_LOCK_PAUSE_S: Final = 0.02
_CLUSTER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LONGEST_NAME: Final = 100
_Named = TypeVar("_Named", "Account", "Cluster", "Context")


def check_cluster_name(name: str) -> None:
    """Check the name of a new cluster, which is also that of its stack and of files.

    Raises:
        InvalidInput: it can't be one.
    """
    if not _CLUSTER_NAME.fullmatch(name):
        raise InvalidInput(
            f"{name!r} can't be the name of a cluster: choose one of letters, digits, `.`, `_` and `-`, of at most "
            f"{_LONGEST_NAME}, that begins with a letter or a digit"
        )


def check_account_name(name: str) -> None:
    """Check the name of a new account.

    Raises:
        InvalidInput: it can't be one.
    """
    if not name.strip():
        raise InvalidInput("the name of an account can't be empty: choose a name")
    if not name.isprintable() or len(name) > _LONGEST_NAME:
        raise InvalidInput(
            f"{name!r} can't be the name of an account: choose one of at most {_LONGEST_NAME} printable characters"
        )


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="forbid")


class Account(_Entry):
    """A Jazz account of the operator; the agent secret is encrypted with the key of this machine's user."""

    name: str
    account_id: str
    recipients: tuple[str, ...] = ()
    encrypted_agent_secret: str


class Cluster(_Entry):
    """A cluster: how to reach it, and the account of its Alpha (`alphaReplicaId`), which links to all its data."""

    name: str
    namespace: str | None = None
    """The Kubernetes namespace; None: unknown, since the cluster is reached by its endpoint."""
    endpoint: str | None = None
    alpha_replica_id: str
    kube_context: str | None = None
    kubeconfig: str | None = None
    access: Access = "port-forward"

    @model_validator(mode="after")
    def _is_reachable(self) -> Cluster:
        if self.access == "endpoint" and not _ENDPOINT.fullmatch(self.endpoint or ""):
            raise ValueError("a cluster with the access `endpoint` needs an endpoint https://HOST or https://HOST:PORT")
        if self.access != "endpoint" and self.namespace is None:
            raise ValueError(f"a cluster with the access `{self.access}` needs a namespace")
        return self

    @property
    def place(self) -> tuple[str | None, ...]:
        """Where it is: its endpoint if nothing else is known, else namespace, kubeconfig and its context."""
        return self.endpoint if self.access == "endpoint" else None, self.namespace, self.kubeconfig, self.kube_context


class Context(_Entry):
    """A cluster and the account that is used with it."""

    name: str
    cluster: str
    account: str


class Config(_Entry):
    """The content of the file. It is immutable: the methods that change it return a copy."""

    current_context: str | None = None
    contexts: tuple[Context, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    accounts: tuple[Account, ...] = Field(default=())

    def account(self, name: str) -> Account:
        """Return the account with this name.

        Raises:
            InvalidInput: there is none.
        """
        return _find(self.accounts, name, "account", "create it with `reside account create`")

    def cluster(self, name: str) -> Cluster:
        """Return the cluster with this name.

        Raises:
            InvalidInput: there is none.
        """
        return _find(
            self.clusters,
            name,
            "cluster",
            "create it with `reside cluster bootstrap`, or add it with `reside cluster add`",
        )

    def check_place(self, name: str, place: tuple[str | None, ...], cure: str = "choose another name") -> None:
        """Refuse the name of a cluster that is elsewhere.

        Raises:
            InvalidInput: there is one.
        """
        for known in self.clusters:
            if known.name == name and known.place != place:
                where = known.endpoint or f"namespace {known.namespace}"
                shown = ", ".join(filter(None, (where, known.kube_context, known.kubeconfig)))
                raise InvalidInput(f"the configuration has another cluster {name} ({shown}): {cure}")

    def context(self, name: str | None = None) -> Context:
        """Return the context with this name, or the current one.

        Raises:
            InvalidInput: there is none.
        """
        chosen = name or self.current_context
        if chosen is None:
            raise InvalidInput("no cluster is configured: create one with `make up` or `reside cluster bootstrap NAME`")
        return _find(self.contexts, chosen, "context", "`reside cluster bootstrap` creates one for each cluster")

    def with_account(self, account: Account) -> Config:
        """Return a copy with one more account.

        Raises:
            InvalidInput: an account with its name exists.
        """
        if any(known.name == account.name for known in self.accounts):
            raise InvalidInput(f"account {account.name!r} exists already: choose another name")
        return self.model_copy(update={"accounts": (*self.accounts, account)})

    def using(self, name: str) -> Config:
        """Return a copy whose current context has this name.

        Raises:
            InvalidInput: there is none.
        """
        return self.model_copy(update={"current_context": self.context(name).name})

    def with_cluster(self, cluster: Cluster, account: str) -> Config:
        """Return a copy with this cluster added or replaced, and a context of the same name as the current one."""
        self.account(account)
        context = Context(name=cluster.name, cluster=cluster.name, account=account)
        return self.model_copy(
            update={
                "clusters": (*(c for c in self.clusters if c.name != cluster.name), cluster),
                "contexts": (*(c for c in self.contexts if c.name != context.name), context),
                "current_context": context.name,
            }
        )

    def without_cluster(self, name: str) -> Config:
        """Return a copy without this cluster and its contexts; another context becomes the current one."""
        contexts = tuple(context for context in self.contexts if context.cluster != name)
        current = self.current_context
        if not any(context.name == current for context in contexts):
            current = contexts[0].name if contexts else None
        clusters = tuple(cluster for cluster in self.clusters if cluster.name != name)
        return self.model_copy(update={"clusters": clusters, "contexts": contexts, "current_context": current})


def _find(entries: tuple[_Named, ...], name: str, what: str, cure: str) -> _Named:
    for entry in entries:
        if entry.name == name:
            return entry
    known = ", ".join(entry.name for entry in entries) or "none"
    raise InvalidInput(f"{what} {name!r} is not in {config_path()} (known: {known}): {cure}")


def config_folder() -> Path:
    """Return the folder of the configuration: `$RESIDE_CONFIG`, or `~/.config/reside` as in the XDG specification.

    Raises:
        InvalidInput: neither variable is set, and the user has no home.
    """
    if folder := os.environ.get("RESIDE_CONFIG"):
        return Path(folder)
    try:
        return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "reside"
    except RuntimeError:
        raise InvalidInput("this user has no home folder: name a folder in RESIDE_CONFIG") from None


def config_path() -> Path:
    """Return the path of the configuration file."""
    return config_folder() / "config.yaml"


def load() -> Config:
    """Return the configuration; an empty one if the file does not exist.

    Raises:
        InvalidInput: the file can't be read, is not YAML or not a valid configuration.
    """
    path = config_path()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Config()
    except OSError as error:
        raise _unusable("read", error) from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not UTF-8: {_DAMAGED}") from None
    try:
        return Config.model_validate(yaml.safe_load(text) or {})
    except yaml.YAMLError as error:
        raise InvalidInput(f"{path} is not YAML: {' '.join(str(error).split())}: {_DAMAGED}") from None
    except ValidationError as error:
        raise InvalidInput(
            f"{path} is not a valid ReSide configuration: {describe_faults(error, 'file')}: correct it, or use the "
            "later release that has written it"
        ) from None


def _unusable(what: str, error: OSError) -> InvalidInput:
    return InvalidInput(
        f"{error.filename or config_path()} can't be {what}: {error.strerror or error}: correct that, or name another "
        "folder in RESIDE_CONFIG"
    )


def change(edit: Callable[[Config], Config]) -> Config:
    """Change the configuration that the file has now, and return the new one.

    Args:
        edit: returns the changed configuration; what it raises is raised, and nothing is written.

    Raises:
        InvalidInput: the file can't be written, or another command has been changing it for ten seconds.
    """
    try:
        with _locked():
            changed = edit(load())
            _save(changed)
    except OSError as error:
        raise _unusable("written", error) from None
    return changed


@contextmanager
def _locked() -> Iterator[None]:
    """Exclude other commands that change the file; the lock ends with its process."""
    config_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    path = config_folder() / "config.lock"
    deadline = time.monotonic() + _LOCK_WITHIN_S
    with path.open("a") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise InvalidInput(
                        f"another command has held {path} for {_LOCK_WITHIN_S:g} s: end it, and try again"
                    ) from None
                time.sleep(_LOCK_PAUSE_S)
            else:
                break
        yield


def _save(config: Config) -> None:
    """Write the configuration atomically."""
    document = config.model_dump(mode="json", by_alias=True, exclude_none=True)
    write_private(config_path(), yaml.safe_dump(document, sort_keys=False, allow_unicode=True), make_folder=True)
