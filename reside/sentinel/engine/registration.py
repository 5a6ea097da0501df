"""Registers the resources of a declaration with an engine, by the engine's RPC, as the resident engine does itself.

Pulumi's SDK would start an asyncio loop and make a future of each output, which is 35 ms of work that resources known
from the start do not need. The requests are those of the SDK (pulumi/runtime/resource.py of the pinned version); a test
compares the resulting states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import grpc  # type: ignore[import-untyped]  # no stubs in the lock file; few calls
from google.protobuf import struct_pb2  # type: ignore[import-untyped]  # as above
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import resource_pb2, resource_pb2_grpc

from reside.sentinel.engine.declaration import NONE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reside.sentinel.engine.declaration import Declaration, DeclaredResource

_SECRET: Final = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}
"""Marks a value as secret (pulumi/runtime/rpc.py: `_special_sig_key` and `_special_secret_sig`)."""
DELETION_TIMEOUT: Final = "1s"
"""How long the provider waits until a deleted object is gone: the shortest time that it knows, as the Sentinel awaits
deletions itself."""
_UNKNOWN: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""Represents an id that the provider has not assigned yet (pulumi/runtime/rpc.py: `UNKNOWN`)."""


def register(monitor_address: str, declaration: Declaration) -> None:
    """Register all resources, and return when the engine has processed them.

    Each resource is registered as soon as those that it refers to exist.

    Raises:
        grpc.RpcError: the engine refused a resource, or is shutting down because of an error.
    """
    with grpc.insecure_channel(monitor_address, options=_GRPC_CHANNEL_OPTIONS) as channel:
        monitor = resource_pb2_grpc.ResourceMonitorStub(channel)
        calls: list[Any] = []
        for resource in declaration.resources:
            others = {
                index: calls[index].result()
                for index in (resource.parent, resource.provider, *resource.after)
                if index != NONE
            }
            calls.append(monitor.RegisterResource.future(request(resource, others)))
        stack, *_ = [call.result() for call in calls]
        monitor.RegisterResourceOutputs(resource_pb2.RegisterResourceOutputsRequest(urn=stack.urn, outputs=_struct({})))


def request(resource: DeclaredResource, others: Mapping[int, Any]) -> resource_pb2.RegisterResourceRequest:
    """Return the request that registers a resource.

    Each input is declared to depend on no resource. By default, the engine assumes that it depends on all resources
    that this one comes after.

    Args:
        resource: the resource.
        others: the engine's responses for the resources that this one refers to, by index.
    """
    none = resource_pb2.RegisterResourceRequest.PropertyDependencies()
    inputs = _marked(resource.inputs, resource.secrets)
    found = resource_pb2.RegisterResourceRequest(
        type=resource.type,
        name=resource.name,
        custom=resource.custom,
        version=resource.version,
        object=_struct(inputs),
        propertyDependencies=dict.fromkeys(inputs, none),
        dependencies=[others[index].urn for index in resource.after],
        acceptSecrets=True,
        acceptResources=True,
        supportsPartialValues=True,
        supportsResultReporting=True,
    )
    if resource.retain:
        found.retainOnDelete = True
    if resource.parent != NONE:
        found.parent = others[resource.parent].urn
    if resource.provider != NONE:
        provider = others[resource.provider]
        found.provider = f"{provider.urn}::{provider.id or _UNKNOWN}"
        found.customTimeouts.delete = DELETION_TIMEOUT
    return found


def _marked(inputs: Mapping[str, Any], secrets: Sequence[str]) -> dict[str, Any]:
    return {name: {**_SECRET, "value": value} if name in secrets else value for name, value in inputs.items()}


def _struct(values: Mapping[str, Any]) -> struct_pb2.Struct:
    found = struct_pb2.Struct()
    found.update(values)
    return found
