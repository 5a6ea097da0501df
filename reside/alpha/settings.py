"""Settings of Alpha, read from the environment of its pod."""

from __future__ import annotations

from pydantic import SecretStr  # noqa: TC002 - pydantic reads the annotations

from reside.model.cluster import ClusterSettings
from reside.replica.settings import ReplicaSettings


class AlphaSettings(ReplicaSettings, ClusterSettings):
    """What Alpha needs besides what every replica needs; each member is read from `RESIDE_<MEMBER>`.

    `registry_mirrors` is JSON in the environment.
    """

    model_config = ReplicaSettings.model_config

    claim_code: SecretStr | None = None
    """One-time code for the super admin's claim; None: no account can claim."""
