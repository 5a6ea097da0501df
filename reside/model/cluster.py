"""Settings of a cluster that its replicas' objects depend on.

The settings of the bootstrap and of Alpha are subclasses of this one model; `cluster` converts either of them. The
bootstrap stores them in Alpha's data, where changes take effect at once. Alpha's pod also gets them as environment
variables (`reside.alpha.stacks.system`), which apply until they are stored.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator, model_validator
from pydantic.alias_generators import to_camel

from reside.common.tls import certificates, is_authority
from reside.common.validation import describe_faults
from reside.model.backends import SecretsProvider, StateBackend
from reside.model.errors import InvalidInput
from reside.model.locations import ImageRepository, located

if TYPE_CHECKING:
    from collections.abc import Mapping


_LABEL: Final = r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"
Gateway = Annotated[str, StringConstraints(pattern=rf"^{_LABEL}/{_LABEL}(/{_LABEL})?$")]
_PLAIN_URL: Final = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._/-]*)?")


class ClusterSettings(BaseModel):
    """Settings of a cluster."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    namespace: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
    """Kubernetes namespace of the cluster."""
    domain: str | None = None
    """Host name of the cluster's Ingresses; none if not given. It requires a cluster issuer."""
    cluster_issuer: str | None = None
    """cert-manager's ClusterIssuer for the domain."""
    default_placement_group: str | None = None
    """Placement group of replicas that have none of their own."""
    registry_mirrors: dict[str, str] = Field(default_factory=dict)
    """Registry host → the address that serves it in its place, `http://HOST:PORT` or `https://HOST`.

    `HOST:PORT` means plain HTTP.
    """

    image_repository: ImageRepository | None = None
    """Repository with ReSide's images, such as `ghcr.io/acme/reside` (`reside images push`).

    `registry.reside.internal/reside` if not given. In a cluster that is bootstrapped with it, their identities are
    under it (`reside.model.identities`).
    """
    registry_authorities: dict[str, str] = Field(default_factory=dict)
    """Registry host → PEM document with its own certificate authority, which is trusted for this host only."""
    registry_credentials: bool = False
    """Whether Alpha, and the kubelet for all pods, use the passwords of registries in the Secret `reside-registry`."""
    allowed_registries: tuple[str, ...] = ()
    """Registry hosts whose images may be loaded, separated by commas; all if not given."""
    request_expiry_hours: float = Field(default=24.0, gt=0, le=24 * 365)
    """Hours after which a load request that nobody has decided expires."""
    request_history: int = Field(default=10, ge=1, le=1000)
    """How many finished load requests are kept of each replica, and of each client whose requests led to no version."""

    traces_endpoint: str | None = None
    """Address to which pods send traces by OTLP over HTTP, such as `http://collector.observability:4318`.

    None are sent if it is not given. Everybody can read it, so it contains no credentials.
    """

    network_policies: Literal["off", "ingress", "full"] = "off"
    """NetworkPolicies of Jazz, etcd and replicas: `ingress` limits who reaches pods, `full` also what they reach."""
    ingress_namespace: str | None = None
    """Namespace of the ingress controller, for NetworkPolicies; any other namespace if not given."""
    ingress_class: str | None = None
    """IngressClass of the cluster's Ingresses; the default one of the Kubernetes cluster if not given."""
    ingress_annotations: dict[str, str] = Field(default_factory=dict)
    """Annotations of the cluster's Ingresses, for the ingress controller."""
    gateway: Gateway | None = None
    """Gateway that serves the domain by HTTPRoutes, `NAMESPACE/NAME` or `NAMESPACE/NAME/LISTENER`; Ingresses do if not
    given."""
    state_backend: StateBackend | None = None
    """Object store for the Sentinel's states, such as `s3://BUCKET/PREFIX?region=REGION`; its volume if not given.

    `volume` moves them back from an object store: its pod keeps the credentials of the store that has states which are
    not moved yet.
    """
    secrets_provider: SecretsProvider | None = None
    """Key that encrypts secrets in new and moved states, such as `awskms://alias/NAME?region=REGION`.

    The engine's passphrase if it is not given.
    """
    policy: dict[str, Any] = Field(default_factory=dict)
    """Levels of the policy's rules, and the rules of an organisation's pack (docs/model.md, section 3)."""

    @field_validator("allowed_registries", mode="before")
    @classmethod
    def _separated(cls, hosts: object) -> object:
        return [host.strip() for host in hosts.split(",") if host.strip()] if isinstance(hosts, str) else hosts

    @field_validator("registry_mirrors")
    @classmethod
    def _with_scheme(cls, mirrors: dict[str, str]) -> dict[str, str]:
        return {host: address if "://" in address else f"http://{address}" for host, address in mirrors.items()}

    @field_validator("registry_authorities")
    @classmethod
    def _are_authorities(cls, authorities: dict[str, str]) -> dict[str, str]:
        for host, pem in authorities.items():
            if not is_authority(pem):
                raise ValueError(
                    f"the authority of {host} is not a PEM document with certificates: give the content of a file that "
                    "begins with -----BEGIN CERTIFICATE-----"
                )
        return {host: certificates(pem) for host, pem in authorities.items()}  # everybody can read them

    @field_validator("traces_endpoint")
    @classmethod
    def _without_credentials(cls, endpoint: str | None) -> str | None:
        if endpoint is not None and not _PLAIN_URL.fullmatch(endpoint):
            raise ValueError("must be http://HOST:PORT or https://HOST, without user, query and fragment")
        return endpoint

    @field_validator("ingress_annotations")
    @classmethod
    def _without_snippets(cls, annotations: dict[str, str]) -> dict[str, str]:
        """Refuse what the policy's rule `own-ingress-paths` refuses in the stack of every replica."""
        if refused := sorted(name for name in annotations if "snippet" in name):
            raise ValueError(f"{', '.join(refused)}: snippets change the controller's configuration: remove them")
        return annotations

    @model_validator(mode="after")
    def _gateway_replaces_ingresses(self) -> ClusterSettings:
        others = {
            "cluster issuer": self.cluster_issuer,
            "ingress class": self.ingress_class,
            "ingress annotations": self.ingress_annotations,
        }
        if self.gateway and (given := [name for name, value in others.items() if value]):
            raise ValueError(
                f"{' and '.join(given)} can't be combined with a gateway, which has its own certificate: omit "
                f"{'it' if len(given) == 1 else 'them'}"
            )
        return self

    @model_validator(mode="after")
    def _domain_needs_issuer(self) -> ClusterSettings:
        if self.gateway:
            return self
        if bool(self.domain) != bool(self.cluster_issuer):
            raise ValueError(
                "a domain needs a cluster issuer for its certificates, and an issuer needs a domain: set both"
            )
        return self

    @property
    def external_url(self) -> str | None:
        """URL at which clients outside of the cluster reach its replicas; None without a domain."""
        return f"https://{self.domain}" if self.domain else None

    def located(self, name: str) -> str:
        """Return the name under which the images of an identity are; a tag or digest is kept."""
        return located(name, self.image_repository)

    def cluster(self) -> ClusterSettings:
        """Return the settings of the cluster alone, without the members of a subclass."""
        return ClusterSettings(**{member: getattr(self, member) for member in ClusterSettings.model_fields})

    def document(self) -> dict[str, Any]:
        """Return the JSON form that is stored in Alpha's data, with null for what is not set, without the namespace."""
        members = ClusterSettings.model_dump(self.cluster(), mode="json", exclude={"namespace"})
        return {to_camel(member): value for member, value in members.items()}

    def stored(self, document: Mapping[str, Any]) -> ClusterSettings:
        """Return the settings that Alpha's data has; these settings apply to what is not stored.

        Raises:
            InvalidInput: the stored settings are malformed.
        """
        names = {to_camel(member): member for member in ClusterSettings.model_fields if member != "namespace"}
        found = {names[key]: value for key, value in document.items() if key in names}
        try:
            return ClusterSettings.model_validate(self.cluster().model_dump() | found)
        except ValidationError as error:
            raise InvalidInput(f"the stored settings of the cluster: {describe_faults(error, 'settings')}") from None
