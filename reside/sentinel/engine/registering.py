"""Declares a stack's resources to a command line's engine, as a program on Pulumi's SDK would, by the engine's RPC.

The SDK runs an asyncio loop, a future for each output and process-wide options for every program; for objects that are
known from the start it is 35 ms of work for nothing. What is sent is what the SDK sends (pulumi/runtime/resource.py of
the pinned version): a test compares the states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import grpc  # type: ignore[import-untyped]  # no stubs in the lock file; few calls
from google.protobuf import struct_pb2  # type: ignore[import-untyped]  # as above
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import resource_pb2, resource_pb2_grpc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reside.sentinel.engine.resources import Resource, Resources

_SECRET: Final = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}
"""Marks a value as secret (pulumi/runtime/rpc.py: ``_special_sig_key`` and ``_special_secret_sig``)."""
_UNKNOWN: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""Stands for the id that a provider will only get (pulumi/runtime/rpc.py: ``UNKNOWN``)."""


def register(monitor_address: str, project: str, stack: str, resources: Resources) -> None:
    """Declare everything, and return when the engine has dealt with it.

    Raises:
        grpc.RpcError: The engine refused a resource, or is shutting down because something failed.
    """
    with grpc.insecure_channel(monitor_address, options=_GRPC_CHANNEL_OPTIONS) as channel:
        monitor = resource_pb2_grpc.ResourceMonitorStub(channel)
        root = monitor.RegisterResource(_request("pulumi:pulumi:Stack", f"{project}-{stack}", custom=False)).urn
        provider = monitor.RegisterResource(
            _request(
                "pulumi:providers:kubernetes",
                "kubernetes",
                parent=root,
                version=resources.version,
                object=_struct(resources.provider),
            )
        )
        common = {
            "parent": root,
            "version": resources.version,
            "provider": f"{provider.urn}::{provider.id or _UNKNOWN}",
        }
        parts = _all(monitor, resources.parts, common)
        _all(monitor, resources.workloads, {**common, "dependencies": parts})
        monitor.RegisterResourceOutputs(resource_pb2.RegisterResourceOutputsRequest(urn=root, outputs=_struct({})))


def _all(monitor: Any, resources: tuple[Resource, ...], common: Mapping[str, Any]) -> list[str]:
    """Register resources at once; returns their URNs when all are done."""
    requests = [_of(resource, common) for resource in resources]
    calls = [monitor.RegisterResource.future(request) for request in requests]
    return [call.result().urn for call in calls]


def _of(resource: Resource, common: Mapping[str, Any]) -> resource_pb2.RegisterResourceRequest:
    """A request that says of each property that it follows from no other resource; unsaid, it would from all."""
    inputs = _inputs(resource)
    none = resource_pb2.RegisterResourceRequest.PropertyDependencies()
    return _request(
        resource.type,
        resource.name,
        object=_struct(inputs),
        propertyDependencies=dict.fromkeys(inputs, none),
        **common,
    )


def _request(kind: str, name: str, *, custom: bool = True, **more: Any) -> resource_pb2.RegisterResourceRequest:
    return resource_pb2.RegisterResourceRequest(
        type=kind,
        name=name,
        custom=custom,
        acceptSecrets=True,
        acceptResources=True,
        supportsPartialValues=True,
        supportsResultReporting=True,
        **more,
    )


def _inputs(resource: Resource) -> dict[str, Any]:
    return {
        name: {**_SECRET, "value": value} if name in resource.secrets else value
        for name, value in resource.properties.items()
        if value is not None
    }


def _struct(values: Mapping[str, Any]) -> struct_pb2.Struct:
    found = struct_pb2.Struct()
    found.update(values)
    return found
