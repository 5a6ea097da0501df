"""A stack of Kubernetes objects as an inline program on Pulumi's SDK.

The Sentinel registers the resources of a declaration without the SDK. The benchmarks compare the two, and a test
compares the resulting states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from reside.sentinel.engine.declaration import NONE
from reside.sentinel.engine.registration import DELETION_TIMEOUT
from reside.sentinel.engine.resources import ProviderSettings, declare_stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reside.model.stacks import K8sObject


def sdk_program(objects: Iterable[K8sObject], settings: ProviderSettings) -> Callable[[], None]:
    """Return a program for the Automation API that registers the same resources as the declaration of a stack."""
    _stack, *resources = declare_stack("", objects, settings).resources  # the SDK registers the stack itself

    def run() -> None:
        made: dict[int, pulumi.Resource] = {}
        for index, resource in enumerate(resources, 1):
            if resource.provider == NONE:
                options = pulumi.ResourceOptions(version=resource.version)
                made[index] = pulumi.ProviderResource("kubernetes", resource.name, resource.inputs, options)
                continue
            provider = made[resource.provider]
            assert isinstance(provider, pulumi.ProviderResource)  # noqa: S101 - narrows the type
            secrets = {name: pulumi.Output.secret(resource.inputs[name]) for name in resource.secrets}
            after = [made[other] for other in resource.after]
            options = pulumi.ResourceOptions(
                provider=provider,
                version=resource.version,
                depends_on=after,
                custom_timeouts=pulumi.CustomTimeouts(delete=DELETION_TIMEOUT),
            )
            made[index] = pulumi.CustomResource(resource.type, resource.name, {**resource.inputs, **secrets}, options)

    return run
