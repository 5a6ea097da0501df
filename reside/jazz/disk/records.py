"""What a local store has of a value."""

from typing import NamedTuple


class StoredBatch(NamedTuple):
    """A part of a log.

    Attributes:
        session: the log's session.
        after: how many transactions precede it.
        transactions: JSON text of a list of transactions, as on the wire.
        signature: the signature of the log up to its end.
    """

    session: str
    after: int
    transactions: str
    signature: str
