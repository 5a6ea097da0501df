"""Settings of a replica, read from the environment of its pod (docs/model.md, section 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from reside.common.validation import describe_faults
from reside.model.constants import ENV_PREFIX, LISTEN_PORT

if TYPE_CHECKING:
    from pydantic import ValidationError


class ReplicaSettings(BaseSettings):
    """What a replica needs before it can log in.

    Each member is read from `RESIDE_<MEMBER>`, e.g. `RESIDE_CONTROL_BLOCK_ID`.
    """

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, extra="ignore", frozen=True, hide_input_in_errors=True)

    replica_name: str
    """Name of the instance; it is in the path of every RPC call."""
    control_block_id: str
    """CoId of the replica's control block."""
    account_id: str
    """Id of the replica's Jazz account."""
    agent_secret: SecretStr
    """Secret of the replica's Jazz account."""
    sync_server_url: str
    """WebSocket address of the Jazz sync server, e.g. `ws://jazz:4200`."""
    etcd_hosts: Annotated[tuple[str, ...], NoDecode]
    """Addresses of etcd; in the environment separated by commas, e.g. `http://etcd:2379`."""
    internal_endpoint: str | None = None
    """Address at which other pods reach this replica; None: `http://<replica_name>`, its Service."""
    external_endpoint: str | None = None
    """Address at which clients outside of the cluster reach it; None: there is none."""
    access_context: Literal["internal", "external"] = "internal"
    """Which endpoint of a peer this replica calls."""
    listen_host: str = "0.0.0.0"  # noqa: S104 - a pod serves its Service; who may call is decided by token
    """Address to listen on."""
    listen_port: int = Field(default=LISTEN_PORT, ge=0, le=65535)
    """Port to listen on; 0: any free one. With 0, `internal_endpoint` defaults to `http://<listen_host>:<port>`."""

    @field_validator("etcd_hosts", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("etcd_hosts")
    @classmethod
    def _hosts_are_not_empty(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        if not hosts:
            raise ValueError("is empty: set it to e.g. http://etcd:2379")
        return hosts


def environment_faults(error: ValidationError) -> str:
    """Describe what is wrong with the environment, by variable; never show values, since some are secret."""
    return describe_faults(error, "environment", name=lambda parts: ENV_PREFIX + "_".join(parts).upper())
