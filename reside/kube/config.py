"""Reads kubeconfigs as kubectl does: the files of `KUBECONFIG`, else `~/.kube/config`; the first to name a thing wins.

Credentials are never read into a value of this module: who connects hands the files on to a client.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from reside.kube.errors import KubeconfigError


@dataclass(frozen=True)
class Context:
    """One context of a kubeconfig.

    Args:
        name: Its name.
        server: The API server's URL.
        namespace: The namespace that it works in.
    """

    name: str
    server: str
    namespace: str


@dataclass(frozen=True)
class Kubeconfig:
    """What the kubeconfig files say together.

    Args:
        files: The files that were read, in order.
        contexts: The usable contexts by name.
        current: The name of the current context, if one is set.
    """

    files: tuple[Path, ...]
    contexts: Mapping[str, Context]
    current: str | None

    def choose(self, name: str | None = None) -> Context:
        """Return the named context, or the current one.

        Raises:
            KubeconfigError: There is none of that name, or none is current; the message lists those that exist.
        """
        wanted = name or self.current
        known = ", ".join(sorted(self.contexts)) or "none"
        if wanted is None:
            raise KubeconfigError(f"No current context is set: name one. Contexts: {known}.")
        if wanted not in self.contexts:
            raise KubeconfigError(f"There is no context {wanted!r}. Contexts: {known}.")
        return self.contexts[wanted]


def default_files(environ: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the kubeconfig files that kubectl would read."""
    listed = [Path(part) for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return listed or [Path.home() / ".kube/config"]


def load(files: Sequence[Path] | None = None) -> Kubeconfig:
    """Read kubeconfig files; those that don't exist are skipped, as kubectl does.

    Args:
        files: Which files; `default_files()` if None.

    Raises:
        KubeconfigError: None of them exists, or one is no kubeconfig.
    """
    wanted = list(files) if files is not None else default_files()
    found = [path for path in wanted if path.exists()]
    if not found:
        raise KubeconfigError(f"No kubeconfig: {', '.join(map(str, wanted))} does not exist.")
    documents = [_read(path) for path in found]
    servers: dict[str, str] = {}
    raw_contexts: dict[str, Mapping[str, Any]] = {}
    current: str | None = None
    for path, document in zip(found, documents, strict=True):
        try:
            for item in document.get("clusters") or []:
                servers.setdefault(item["name"], item["cluster"].get("server", ""))
            for item in document.get("contexts") or []:
                raw_contexts.setdefault(item["name"], dict(item["context"]))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise KubeconfigError(f"{path} is no kubeconfig: a cluster or context has no name or content.") from error
        current = current or document.get("current-context") or None
    contexts = {
        name: Context(name, servers[raw["cluster"]], raw.get("namespace") or "default")
        for name, raw in raw_contexts.items()
        if raw.get("cluster") in servers
    }
    return Kubeconfig(tuple(found), contexts, current)


def _read(path: Path) -> Mapping[str, Any]:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        # The error's own text would quote lines of the file, which holds credentials
        raise KubeconfigError(f"{path} is no kubeconfig: it is not YAML.") from None
    except OSError as error:
        raise KubeconfigError(f"{path} can't be read: {error.strerror}.") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise KubeconfigError(f"{path} is no kubeconfig: it holds no mapping.")
    return document
