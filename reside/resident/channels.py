"""A patch of Pulumi's SDK: the gRPC channels of different operations share no connection.

An engine serves each operation at new loopback ports, and a long-lived process meets the same port again. In a process,
gRPC shares one connection for each address as long as any channel to the address exists; a traceback can keep the
channel of an ended program alive. After a refused attempt to connect, gRPC waits up to two minutes before the next
attempt, and a new channel to the same address waits too. A program that gets such a port fails with its first request
("Resource monitor has terminated, shutting down"), although its engine is running. The SDK makes all its channels with
one list of options; this patch adds the option that turns sharing off.

See `GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL` in gRPC core (include/grpc/impl/channel_arg_names.h).
"""

from __future__ import annotations

from functools import cache

from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS


@cache
def separate_channels() -> None:
    """Install the patch; further calls have no effect."""
    _GRPC_CHANNEL_OPTIONS.append(("grpc.use_local_subchannel_pool", 1))
