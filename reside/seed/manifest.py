"""The seed as a manifest for ``kubectl apply``: a Job with its ServiceAccount, Role and RoleBinding.

Everything carries the managed-by label and is in no stack, so that the Sentinel sweeps it once it has left its careful
mode. Domain and issuer stand as ``${RESIDE_BOOTSTRAP_DOMAIN}`` and ``${RESIDE_BOOTSTRAP_CLUSTER_ISSUER}``, for envsubst
or an editor; a placeholder that is left as it is means none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from reside.model.constants import SEED_NAME
from reside.model.errors import InvalidInput
from reside.seed import platform
from reside.seed.settings import SETTINGS_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reside.seed.settings import BootstrapSettings

DOMAIN_VARIABLE = "RESIDE_BOOTSTRAP_DOMAIN"
ISSUER_VARIABLE = "RESIDE_BOOTSTRAP_CLUSTER_ISSUER"
GRACE_SECONDS = 60
RETRIES = 10
"""How often the Job starts a new pod; each goes on where the last one was killed."""


def placeholder(variable: str) -> str:
    """How a variable that is to be filled in stands in the manifest."""
    return f"${{{variable}}}"


def filled(environment: Mapping[str, str], variable: str) -> str | None:
    """A placeholder's value; None if it is empty or was never filled in."""
    value = environment.get(variable, "").strip()
    return None if value in ("", placeholder(variable)) else value


def external_names(environment: Mapping[str, str]) -> dict[str, str]:
    """Domain and issuer as settings' members, out of the Job's environment.

    Raises:
        InvalidInput: only one of the two is given.
    """
    domain, issuer = filled(environment, DOMAIN_VARIABLE), filled(environment, ISSUER_VARIABLE)
    if bool(domain) != bool(issuer):
        missing = ISSUER_VARIABLE if domain else DOMAIN_VARIABLE
        raise InvalidInput(f"{missing} is not filled in: a domain needs a cluster issuer, and an issuer a domain")
    return {"domain": domain, "cluster_issuer": issuer} if domain and issuer else {}


def seed_objects(settings: BootstrapSettings) -> list[dict[str, Any]]:
    """The seed's objects; the settings' domain and issuer fill in the placeholders if they are given."""
    return [*platform.seed_access(settings.namespace), _job(settings)]


def render(settings: BootstrapSettings) -> str:
    """The whole manifest as YAML."""
    return yaml.dump_all(seed_objects(settings), Dumper=_Plain, sort_keys=False)


class _Plain(yaml.SafeDumper):
    """Writes a value that occurs twice twice: anchors are legal, but nobody expects them in a manifest."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the base class's signature
        return True


def _job(settings: BootstrapSettings) -> dict[str, Any]:
    inside = settings.model_copy(
        update={
            "access": "in-cluster",
            "kubeconfig": None,
            "kube_context": None,
            "domain": None,
            "cluster_issuer": None,
        }
    )
    container = {
        "name": SEED_NAME,
        "image": settings.images.seed,
        "env": [
            {"name": SETTINGS_VARIABLE, "value": inside.to_json()},
            {"name": DOMAIN_VARIABLE, "value": settings.domain or placeholder(DOMAIN_VARIABLE)},
            {"name": ISSUER_VARIABLE, "value": settings.cluster_issuer or placeholder(ISSUER_VARIABLE)},
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
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": platform.metadata(SEED_NAME, settings.namespace),
        "spec": {"backoffLimit": RETRIES, "template": {"spec": pod}},
    }
