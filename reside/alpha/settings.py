"""Settings of Alpha, from the environment of its pod (model.md §6)."""

from __future__ import annotations

from pydantic import Field, SecretStr, field_validator, model_validator

from reside.alpha.stacks.cluster import ClusterSettings
from reside.replica.settings import ReplicaSettings


class AlphaSettings(ReplicaSettings):
    """What Alpha must know beyond any replica; each member is read from ``RESIDE_<MEMBER>``."""

    namespace: str
    """The Kubernetes namespace that is the cluster."""
    domain: str | None = None
    """Host name of the cluster's Ingresses; None: it has none."""
    cluster_issuer: str | None = None
    """cert-manager's ClusterIssuer for the domain; a domain needs one."""
    default_placement_group: str | None = None
    """Placement group of replicas that have none of their own."""
    registry_mirrors: dict[str, str] = Field(default_factory=dict)
    """JSON: registry host → the address that really serves it, ``http://host:port`` or ``host:port`` (plain HTTP)."""
    claim_code: SecretStr | None = None
    """The one-time code for the super admin's claim; None: nobody can claim."""

    @field_validator("registry_mirrors")
    @classmethod
    def _addresses(cls, mirrors: dict[str, str]) -> dict[str, str]:
        return {host: value if "://" in value else f"http://{value}" for host, value in mirrors.items()}

    @model_validator(mode="after")
    def _issuer(self) -> AlphaSettings:
        if bool(self.domain) != bool(self.cluster_issuer):
            raise ValueError("a domain needs a cluster issuer for its certificates, and an issuer a domain: give both")
        return self

    def cluster(self) -> ClusterSettings:
        """What render needs of these; addresses of Jazz and etcd are always those inside the cluster."""
        return ClusterSettings(
            namespace=self.namespace,
            domain=self.domain,
            cluster_issuer=self.cluster_issuer,
            default_placement_group=self.default_placement_group,
            registry_mirrors=self.registry_mirrors,
        )
