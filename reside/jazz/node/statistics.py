"""Figures about a node, for whoever watches it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Statistics:
    """How much a node holds and does at one moment.

    Attributes:
        values: Values in memory, with the groups and accounts that they need.
        watchers: Subscribed iterators and callbacks.
        loads: Values asked for and not answered.
        buffered: Characters that wait to be sent.
        unacknowledged: Values with writes that the server has not acknowledged.
    """

    values: int
    watchers: int
    loads: int
    buffered: int
    unacknowledged: int
