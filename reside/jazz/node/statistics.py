"""Statistics of a node, for monitoring."""

from typing import NamedTuple


class Statistics(NamedTuple):
    """The state of a node at one moment.

    Attributes:
        values: number of values in memory, including the groups and accounts that they need.
        watchers: number of subscribed iterators and callbacks.
        loads: number of values requested but not yet answered.
        buffered: number of characters queued to be sent.
        unacknowledged: number of values with writes that the server has not acknowledged.
        rejected: number of sessions that violated the protocol and were ignored, since the node was opened.
    """

    values: int
    watchers: int
    loads: int
    buffered: int
    unacknowledged: int
    rejected: int
