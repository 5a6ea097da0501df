"""The rules of rules.py as a Pulumi policy pack: `pulumi preview --policy-pack policy`.

The pack checks the inputs of each resource of the Kubernetes provider, which are the object. The cluster's namespace is
the pack's configuration `namespace` of each policy; without it, namespaces are not checked.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulumi_policy import (
    EnforcementLevel,
    PolicyConfigSchema,
    PolicyPack,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
)

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the engine runs the pack from this folder

from reside.policy import rules  # needs the path above

if TYPE_CHECKING:
    from collections.abc import Callable

_SCHEMA = PolicyConfigSchema(properties={"namespace": {"type": "string"}})
_PREFIX = "kubernetes:"
_MEMBERS = ("metadata", "spec", "rules", "roleRef", "subjects")


def _validate(rule: rules.Rule) -> Callable[[ResourceValidationArgs, ReportViolation], None]:
    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        if not args.resource_type.startswith(_PREFIX):
            return
        manifest = _manifest(args)
        for message in rule.judge(manifest, rules.Context(namespace=args.get_config().get("namespace"))):
            report(f"{rules.object_name(manifest)}: {message}", None)

    return validate


def _manifest(args: ResourceValidationArgs) -> dict[str, Any]:
    """Return the members that the rules check, and the kind from the type token, since inputs may lack the kind.

    Other members, especially the data of a Secret, are not read: if a value is unknown until the update, Pulumi skips
    the policy for the whole resource.
    """
    kind = {"kind": args.resource_type.rpartition(":")[2]}
    return kind | {member: args.props[member] for member in _MEMBERS if member in args.props}


def _describe(rule: rules.Rule) -> str:
    return f"{(rule.judge.__doc__ or '').strip()} {rule.reason} Cure: {rule.cure}."


PolicyPack(
    name="reside",
    enforcement_level=EnforcementLevel.MANDATORY,
    policies=[
        ResourceValidationPolicy(
            name,
            _describe(rule),
            _validate(rule),
            enforcement_level=EnforcementLevel(rule.level),
            config_schema=_SCHEMA,
        )
        for name, rule in rules.RULES.items()
    ],
)
