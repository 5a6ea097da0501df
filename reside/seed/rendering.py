"""Render the seed for `kubectl apply`: a Job with its ServiceAccount, Role and RoleBinding, and its record.

All objects carry the managed-by label and are in no stack, so that the Sentinel prunes them when careful mode ends;
except for the ConfigMap with the record of the bootstrap (`outcome`), which outlives the seed. It is part of the
manifest so that `kubectl wait` finds it.
Domain and issuer are the placeholders `${RESIDE_BOOTSTRAP_DOMAIN}` and `${RESIDE_BOOTSTRAP_CLUSTER_ISSUER}`, to be
replaced by envsubst or an editor. An unchanged placeholder means that there is no value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from reside.alpha.stacks.system import registry_login
from reside.model.constants import SEED_NAME
from reside.model.errors import InvalidInput
from reside.seed import outcome, platform
from reside.seed.settings import SETTINGS_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reside.seed.settings import BootstrapSettings

DOMAIN_VARIABLE = "RESIDE_BOOTSTRAP_DOMAIN"
ISSUER_VARIABLE = "RESIDE_BOOTSTRAP_CLUSTER_ISSUER"
GRACE_SECONDS = 60
RETRIES = 10
"""Maximum number of retries of the Job's pod; each pod continues where the previous one was interrupted."""


def placeholder(variable: str) -> str:
    """Return the placeholder of a variable."""
    return f"${{{variable}}}"


def placeholder_value(environment: Mapping[str, str], variable: str) -> str | None:
    """Return the value of a placeholder; None if it is empty or unchanged."""
    value = environment.get(variable, "").strip()
    return None if value in ("", placeholder(variable)) else value


def external_names(environment: Mapping[str, str], *, gateway: bool = False) -> dict[str, str]:
    """Return domain and issuer from the Job's environment, as members of the settings; a gateway needs no issuer.

    Raises:
        InvalidInput: only one of them is set.
    """
    domain, issuer = placeholder_value(environment, DOMAIN_VARIABLE), placeholder_value(environment, ISSUER_VARIABLE)
    if gateway:
        return {"domain": domain} if domain else {}
    if bool(domain) != bool(issuer):
        missing = ISSUER_VARIABLE if domain else DOMAIN_VARIABLE
        raise InvalidInput(f"{missing} is not set: a domain needs a cluster issuer, and an issuer needs a domain")
    return {"domain": domain, "cluster_issuer": issuer} if domain and issuer else {}


def seed_objects(settings: BootstrapSettings) -> list[dict[str, Any]]:
    """Return the seed's objects; the settings' domain and issuer replace the placeholders if they are set."""
    record = outcome.config_map(settings.namespace, outcome.pending())
    return [record, *platform.seed_access(settings.namespace, routes=settings.gateway is not None), _job(settings)]


def render(settings: BootstrapSettings) -> str:
    """Return all objects as YAML."""
    return yaml.dump_all(seed_objects(settings), Dumper=_Plain, sort_keys=False)


class _Plain(yaml.SafeDumper):
    """A YAML dumper without anchors, which readers of Kubernetes objects do not expect."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the base class's signature
        return True


def _job(settings: BootstrapSettings) -> dict[str, Any]:
    in_cluster = settings.model_copy(
        update={
            "access": "in-cluster",
            "kubeconfig": None,
            "kube_context": None,
            "image_documents": None,
            "domain": None,
            "cluster_issuer": None,
        }
    )
    issuer = settings.cluster_issuer or placeholder(ISSUER_VARIABLE)
    container: dict[str, Any] = {
        "name": SEED_NAME,
        "image": settings.located(settings.images.seed),
        "env": [
            {"name": SETTINGS_VARIABLE, "value": in_cluster.to_json()},
            {"name": DOMAIN_VARIABLE, "value": settings.domain or placeholder(DOMAIN_VARIABLE)},
            *([] if settings.gateway else [{"name": ISSUER_VARIABLE, "value": issuer}]),
        ],
        "resources": {"requests": {"cpu": "200m", "memory": "512Mi"}},
    }
    pod = {
        "serviceAccountName": SEED_NAME,
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": platform.pod_security(),
        "containers": [container],
        **platform.pull_secrets(settings),
    }
    if settings.registry_credentials:
        volume, mount, folder = registry_login()
        pod["volumes"] = [volume]
        container |= {"env": [*container["env"], folder], "volumeMounts": [mount]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": platform.metadata(SEED_NAME, settings.namespace),
        "spec": {"backoffLimit": RETRIES, "template": {"spec": pod}},
    }
