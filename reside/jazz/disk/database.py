"""The database file of a local store: headers, logs as they were signed, and what the server has not acknowledged.

Invariants:
    One process at a time uses the file: it holds SQLite's exclusive lock, which is released when the process ends.
    A commit contains whole batches, each with the signature of the log up to its end. The file is in WAL mode with
    `synchronous=NORMAL`: a killed process loses no commit; a power failure may lose the latest commits, as if the
    process had been killed a moment earlier.
    A file that can't be used is an error with its name and the cure, and is not changed.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from reside.jazz.disk.records import StoredBatch
from reside.jazz.errors import StoreFailed

_VERSION: Final = 1
_APPLICATION: Final = 0x4A617A7A
_CORRUPT: Final = "it is corrupt: delete it (the server has what it acknowledged), or restore a copy"
_SCHEMA: Final = f"""
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_VERSION};
CREATE TABLE account (id TEXT NOT NULL) STRICT;
CREATE TABLE value (id TEXT PRIMARY KEY, header TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE log (
    number INTEGER PRIMARY KEY, value TEXT NOT NULL, session TEXT NOT NULL, UNIQUE (value, session)
) STRICT;
CREATE TABLE batch (
    number INTEGER PRIMARY KEY, log INTEGER NOT NULL, after INTEGER NOT NULL, transactions TEXT NOT NULL,
    signature TEXT NOT NULL, UNIQUE (log, after)
) STRICT;
CREATE TABLE pending (value TEXT NOT NULL, session TEXT NOT NULL, PRIMARY KEY (value, session)) STRICT, WITHOUT ROWID;
"""


class SqliteStore:
    """A local store for one account's node: `Node(url, credentials, store=SqliteStore(path))`.

    Args:
        path: the file, created if it does not exist. SQLite keeps two more files beside it while it is open.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._connection: sqlite3.Connection | None = None
        self._logs: dict[tuple[str, str], int] = {}

    def __repr__(self) -> str:
        return f"<SqliteStore {self.path}>"

    def _open(self, account_id: str) -> None:
        """Open and check the file for an account.

        Raises:
            StoreFailed: the file is corrupt, not accessible, used by another process, or of another account or version.
        """
        if self._connection is not None:
            raise StoreFailed(self.path, "another node of this process has it open: use one file for each node")
        try:
            # A node uses one thread, which may not be the one that created this object.
            self._connection = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
            self._prepare(self._connection, account_id)
        except sqlite3.Error as error:
            self._close()
            raise self._failure(error) from error
        except BaseException:
            self._close()
            raise

    def _prepare(self, connection: sqlite3.Connection, account_id: str) -> None:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if not tables:
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            connection.execute("INSERT INTO account VALUES (?)", (account_id,))
        elif application != _APPLICATION:
            raise StoreFailed(self.path, "it is a database of another application: use another file")
        elif version != _VERSION:
            raise StoreFailed(
                self.path, f"its version is {version}, this program supports {_VERSION}: use another file"
            )
        connection.execute("COMMIT")
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise StoreFailed(self.path, _CORRUPT)
        owners = [owner for (owner,) in connection.execute("SELECT id FROM account")]
        if owners != [account_id]:
            raise StoreFailed(
                self.path, f"it belongs to the account {', '.join(owners)}: use one file for each account"
            )

    def _close(self) -> None:
        """Close the file; it can be opened again."""
        connection, self._connection = self._connection, None
        self._logs.clear()
        if connection is not None:
            connection.close()

    @property
    def is_open(self) -> bool:
        """Whether a node has the file open."""
        return self._connection is not None

    def _header(self, co_id: str) -> str | None:
        """Return the JSON text of a value's header; None if the value is not stored.

        Raises:
            StoreFailed: the file can't be read.
        """
        with self._using() as connection:
            row = connection.execute("SELECT header FROM value WHERE id = ?", (co_id,)).fetchone()
            return None if row is None else str(row[0])

    def _all_batches(self, co_id: str) -> list[StoredBatch]:
        """Return the batches of a value in the order of arrival.

        Raises:
            StoreFailed: the file can't be read.
        """
        with self._using() as connection:
            rows = connection.execute(
                "SELECT session, after, transactions, signature FROM log JOIN batch ON batch.log = log.number "
                "WHERE value = ? ORDER BY batch.number",
                (co_id,),
            )
            return [StoredBatch(*row) for row in rows]

    def _sessions(self, co_id: str) -> list[str]:
        """Return the sessions of a value.

        Raises:
            StoreFailed: the file can't be read.
        """
        with self._using() as connection:
            return [session for (session,) in connection.execute("SELECT session FROM log WHERE value = ?", (co_id,))]

    def _lengths(self, co_id: str) -> dict[str, int]:
        """Return how many transactions each session of a value has at least: up to its last batch, and one of that.

        Raises:
            StoreFailed: the file can't be read.
        """
        with self._using() as connection:
            rows = connection.execute(
                "SELECT session, max(after) FROM log JOIN batch ON batch.log = log.number "
                "WHERE value = ? GROUP BY session",
                (co_id,),
            )
            return {session: after + 1 for session, after in rows}

    def _batch_numbers(self, co_id: str) -> list[int]:
        """Return the numbers of a value's batches in the order of arrival.

        Raises:
            StoreFailed: the file can't be read.
        """
        with self._using() as connection:
            rows = connection.execute(
                "SELECT batch.number FROM log JOIN batch ON batch.log = log.number "
                "WHERE value = ? ORDER BY batch.number",
                (co_id,),
            )
            return [number for (number,) in rows]

    def _batches(self, numbers: Sequence[int]) -> list[StoredBatch]:
        """Return batches by their numbers, in this order.

        Raises:
            StoreFailed: the file can't be read.
        """
        with self._using() as connection:
            rows = (
                connection.execute(
                    "SELECT session, after, transactions, signature FROM batch JOIN log ON batch.log = log.number "
                    "WHERE batch.number = ?",
                    (number,),
                ).fetchone()
                for number in numbers
            )
            return [StoredBatch(*row) for row in rows]

    def _pending(self) -> Iterable[tuple[str, str]]:
        """Return the values and sessions that the server has not acknowledged.

        The session is empty for a value that has only a header.

        Raises:
            StoreFailed: the file can't be read.
        """
        with self._using() as connection:
            return connection.execute("SELECT value, session FROM pending").fetchall()

    @contextmanager
    def _writing(self) -> Iterator["StoreWriter"]:
        """Commit everything that is written in the block, or nothing.

        Raises:
            StoreFailed: the file can't be written: it is corrupt, or the disk is full.
        """
        with self._using() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield StoreWriter(connection, self._logs)
            except BaseException:
                self._logs.clear()
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        if self._connection is None:
            raise StoreFailed(self.path, "it is not open: use it within the `async with` block of its node")
        try:
            yield self._connection
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def _corrupt(self, why: str) -> StoreFailed:
        """Return the error for content that can't have been stored by this package."""
        return StoreFailed(self.path, f"{_CORRUPT} ({why})")

    def _failure(self, error: sqlite3.Error) -> StoreFailed:
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StoreFailed(self.path, "another process has it open: stop it, or use another file")
        if code is not None and code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return self._corrupt(str(error))
        return StoreFailed(self.path, f"it can't be used: {error}")


class StoreWriter:
    """Writes within one commit."""

    def __init__(self, connection: sqlite3.Connection, logs: dict[tuple[str, str], int]) -> None:
        self._connection = connection
        self._logs = logs

    def header(self, co_id: str, header: str) -> None:
        """Store a value's header."""
        self._connection.execute("INSERT OR IGNORE INTO value VALUES (?, ?)", (co_id, header))

    def batch(self, co_id: str, batch: StoredBatch) -> None:
        """Append a batch to a log."""
        self._connection.execute(
            "INSERT INTO batch (log, after, transactions, signature) VALUES (?, ?, ?, ?)",
            (self._log(co_id, batch.session), batch.after, batch.transactions, batch.signature),
        )

    def forget(self, co_id: str, session: str) -> None:
        """Drop a log of a deleted value."""
        self._connection.execute("DELETE FROM batch WHERE log = ?", (self._log(co_id, session),))

    def mark_pending(self, co_id: str, sessions: Iterable[str]) -> None:
        """Note that the server has not acknowledged all of a value; see `SqliteStore._pending`."""
        rows = [(co_id, session) for session in sessions] or [(co_id, "")]
        self._connection.executemany("INSERT OR IGNORE INTO pending VALUES (?, ?)", rows)

    def mark_acknowledged(self, co_id: str) -> None:
        """Note that the server has acknowledged all of a value."""
        self._connection.execute("DELETE FROM pending WHERE value = ?", (co_id,))

    def _log(self, co_id: str, session: str) -> int:
        number = self._logs.get((co_id, session))
        if number is None:
            self._connection.execute("INSERT OR IGNORE INTO log (value, session) VALUES (?, ?)", (co_id, session))
            row = self._connection.execute("SELECT number FROM log WHERE value = ? AND session = ?", (co_id, session))
            number = self._logs[co_id, session] = int(row.fetchone()[0])
        return number
