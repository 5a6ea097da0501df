"""Each operation's program has connections of its own.

An engine serves every operation at new loopback ports, and an application that lives long meets the same port again.
gRPC keeps one connection an address in a process, as long as a channel to it is left somewhere (a traceback holds an
ended program's), and once an attempt to connect was refused it waits between attempts, up to two minutes; a new channel
to the same address shares that. A program that is given such a port is told at its first question that nobody answers
("Resource monitor has terminated, shutting down"), although its engine does. Pulumi's Python SDK (3.259) makes its
channels with options that it keeps in one list, which gets one more here: no sharing.

gRPC core, ``GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL`` (include/grpc/impl/channel_arg_names.h).
"""

from __future__ import annotations

from functools import cache

from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS


@cache
def keep_apart() -> None:
    """Have the SDK's channels of this process share no connection; once a process."""
    _GRPC_CHANNEL_OPTIONS.append(("grpc.use_local_subchannel_pool", 1))
