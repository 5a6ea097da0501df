"""States of stacks, as Pulumi's file backend writes them."""

from __future__ import annotations

import json
from typing import Any

SALT = "v1:n9hcFN0zw0I=:v1:jKmdmNCi7VfO8oHq:cEcUvMBlI3ZPDRCSiNoib4EGJxh2Pw=="
_TYPE = "kubernetes:core/v1:ConfigMap"


def state(*names: str, provider: dict[str, Any] | None = None, pending: tuple[str, ...] = ()) -> bytes:
    """Return the state of a stack with these resources, and with creations of others that are pending."""
    resources = [
        {"urn": f"urn:pulumi:demo::reside::{_TYPE}::{name}", "custom": True, "type": _TYPE} for name in names + pending
    ]
    latest: dict[str, Any] = {
        "manifest": {"time": "2026-11-24T11:52:24Z", "version": "v3.259.0"},
        "secrets_providers": {"type": "passphrase", "state": {"salt": SALT}} if provider is None else provider,
        "resources": resources[: len(names)],
    }
    if pending:
        latest["pending_operations"] = [{"resource": each, "type": "creating"} for each in resources[len(names) :]]
    return json.dumps({"version": 3, "checkpoint": {"stack": "organization/reside/demo", "latest": latest}}).encode()
