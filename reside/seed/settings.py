"""Settings of the bootstrap program, validated. docs/settings.md is made from the descriptions of this one model.

All of them come from the first of these sources that exists: the JSON in the environment variable
`RESIDE_BOOTSTRAP_SETTINGS` (the seed's Job), the file named by `RESIDE_BOOTSTRAP_SETTINGS_FILE` (the CLI), the stack's
configuration (a manual `pulumi up`). The CLI and `pulumi up` also read single settings from the environment
(`members_of_environment`). Dynamic providers receive the settings as JSON inputs, because their process does not
inherit the program's environment.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel

from reside.access.target import Access, Target
from reside.common.validation import describe_faults
from reside.model.cluster import ClusterSettings
from reside.model.errors import InvalidInput
from reside.sentinel.policy_document import PolicyDocument

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SETTINGS_VARIABLE = "RESIDE_BOOTSTRAP_SETTINGS"
SETTINGS_FILE_VARIABLE = "RESIDE_BOOTSTRAP_SETTINGS_FILE"
VARIABLE_PREFIX = "RESIDE_BOOTSTRAP_"
IMAGE_DOCUMENTS = "image-documents.json"
"""Name of the file, beside that with the images' digests, that has what the images say about themselves."""
DOCUMENTS = ("registry_mirrors", "registry_authorities", "ingress_annotations", "policy")
"""Settings that are JSON in the stack's configuration and in the environment."""

ImageReference = Annotated[str, StringConstraints(pattern=r"^[a-z0-9.:-]+(/[a-z0-9._-]+)+@sha256:[0-9a-f]{64}$")]


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Images(_Settings):
    """The images of the platform, each `<identity>@<digest>`; other names in the same file are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    alpha: ImageReference
    kubernetes_sentinel: ImageReference = Field(alias="kubernetes-sentinel")
    seed: ImageReference
    jazz: ImageReference
    etcd: ImageReference


class BootstrapSettings(_Settings, ClusterSettings):
    """Settings of the cluster to bootstrap: those that Alpha needs later, and those of the bootstrap itself."""

    images: Images
    access: Access = "port-forward"
    """How the bootstrap reaches Jazz and etcd: `direct` by addresses of Services, `in-cluster` by their names in a pod,
    `port-forward` through the Kubernetes API."""
    kubeconfig: str | None = None
    """Path of the kubeconfig; the default locations if not given, in a pod its service account."""
    kube_context: str | None = None
    """Context of the kubeconfig; the current one if not given."""
    storage_class: str | None = None
    """StorageClass of the volumes; the cluster's default if not given."""
    storage_size: str = "1Gi"
    """Size of each volume: those of Jazz, etcd and the Sentinel."""
    jazz_mode: Literal["members", "open"] = "members"
    """What the Jazz server stores: `members`, what could count for readers; `open`, all that is signed."""
    image_documents: str | None = None
    """Path of the file that has what the images say about themselves; without it, they are read from the registry.

    `reside images push` and `make up` write it beside the images' digests, where it is found."""
    deadline: float = Field(default=300, gt=0)
    """Seconds that each wait of the bootstrap may take."""
    policy: PolicyDocument = Field(default_factory=dict)
    """Levels of the policy's rules, and the rules of an organisation's pack (docs/model.md, section 3)."""

    @property
    def target(self) -> Target:
        """The cluster, and how to reach it."""
        return Target(self.namespace, self.access, self.kubeconfig, self.kube_context, self.deadline)

    def to_json(self) -> str:
        """Return the settings as canonical JSON."""
        return json.dumps(self.model_dump(mode="json", by_alias=True, exclude_none=True), sort_keys=True)

    @staticmethod
    def from_json(text: str, source: str = "settings") -> BootstrapSettings:
        """Parse settings from JSON.

        Raises:
            InvalidInput: the text is not JSON or not valid settings; names `source` and every invalid member.
        """
        try:
            return parse(json.loads(text), source)
        except json.JSONDecodeError as error:
            raise InvalidInput(f"{source} is not JSON: {error}") from None


def parse(data: Mapping[str, Any], source: str) -> BootstrapSettings:
    """Validate settings.

    Raises:
        InvalidInput: a member is missing, unknown or malformed; the message names every invalid member.
    """
    try:
        return BootstrapSettings.model_validate(data)
    except ValidationError as error:
        raise InvalidInput(f"{source}: {describe_faults(error, 'settings')}") from None


def read_images(path: Path) -> dict[str, str]:
    """Read the images that `images/build.py` built: name → `identity@digest`.

    Raises:
        InvalidInput: the file does not exist, or is not JSON.
    """
    try:
        images = json.loads(path.read_text())
    except FileNotFoundError:
        raise InvalidInput(
            f"{path} does not exist: build the images with `make up` or `reside images push`, or name the images.json "
            "of a release with --images"
        ) from None
    except ValueError:
        raise InvalidInput(f"{path} is not JSON: remove it and build the images with `make up`") from None
    if not isinstance(images, dict):
        raise InvalidInput(f"{path} is not a JSON object: remove it and build the images with `make up`")
    return images


def documents_of(images: Path) -> str | None:
    """Return the path of the images' documents beside the file with their digests; None without such a file."""
    found = images.absolute().with_name(IMAGE_DOCUMENTS)
    return str(found) if found.exists() else None


def from_environment(environment: Mapping[str, str] = os.environ) -> BootstrapSettings | None:
    """Read the settings from the environment; return None if it has none.

    Raises:
        InvalidInput: see `parse`; also if the named file can't be read.
    """
    if text := environment.get(SETTINGS_VARIABLE):
        return BootstrapSettings.from_json(text, SETTINGS_VARIABLE)
    if file := environment.get(SETTINGS_FILE_VARIABLE):
        try:
            return BootstrapSettings.from_json(Path(file).read_text(), file)
        except OSError as error:
            raise InvalidInput(f"{SETTINGS_FILE_VARIABLE}={file} can't be read: {error.strerror}") from None
    return None


def from_stack(
    get: Callable[[str], str | None], root: Path, environment: Mapping[str, str] = os.environ
) -> BootstrapSettings:
    """Read the settings from a stack's configuration, and those that the environment has in place of its values.

    Args:
        get: returns the value of a configuration key of the project, or None.
        root: base folder of relative paths.
        environment: has settings as `members_of_environment` reads them.

    Raises:
        InvalidInput: see `parse`; also if the named local cluster does not exist.
    """
    file = root / (get("imagesFile") or ".state/images.json")
    data: dict[str, Any] = {"images": read_images(file), "image_documents": documents_of(file)}
    if local := get("localCluster"):
        data |= local_cluster(local)
    data |= _members(get, to_camel, "stack configuration: ")
    return parse(data | members_of_environment(environment), "stack configuration and environment")


def members_of_environment(environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return the settings in the environment: each in the variable `RESIDE_BOOTSTRAP_<MEMBER>`.

    Raises:
        InvalidInput: a document is not JSON.
    """
    return _members(environment.get, variable_of, "")


def variable_of(member: str) -> str:
    """Return the environment variable of a setting."""
    return VARIABLE_PREFIX + member.upper()


def described(member: str, *more: str) -> str:
    """Return what a setting means, in one paragraph, with sentences that only one way to set it needs."""
    text = BootstrapSettings.model_fields[member].description or ""
    return " ".join([*text.partition("\n\n")[0].split(), *more])


def _members(get: Callable[[str], str | None], name_of: Callable[[str], str], where: str) -> dict[str, Any]:
    """Return the settings that are given as texts. Documents are JSON."""
    data: dict[str, Any] = {}
    for member in BootstrapSettings.model_fields.keys() - {"images"}:
        text = get(name_of(member))
        if not text:
            continue
        try:
            data[member] = json.loads(text) if member in DOCUMENTS else text
        except json.JSONDecodeError as error:
            raise InvalidInput(f"{where}{name_of(member)} is not JSON: {error}") from None
    return data


def local_cluster(name: str) -> dict[str, Any]:
    """Return the settings for a local cluster: how to reach the cluster and its registry.

    Raises:
        InvalidInput: it does not exist.
    """
    from reside.local import LocalCluster, NoSuchClusterError  # noqa: PLC0415 - needed only for a local cluster

    try:
        info = LocalCluster(name).info()
    except NoSuchClusterError:
        raise InvalidInput(
            f"the local cluster {name!r} does not exist: start it with `make up` or `reside local up`"
        ) from None
    mirrors = {info.registry_host: info.registry_bridge} if info.registry_bridge else {}
    return {
        "access": "direct",
        "kubeconfig": str(info.kubeconfig),
        "kube_context": info.context,
        "registry_mirrors": mirrors,
    }


def missing(variable: str) -> InvalidInput:
    """Return the error for missing settings."""
    return InvalidInput(f"{variable} is not set: render the seed with `reside cluster manifest`")
