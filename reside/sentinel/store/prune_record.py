"""What the volume remembers of pruning: whether it knows the cluster, and when objects were deleted lately.

A volume that is empty knows no stack, so every object looks unknown. Such a volume becomes *established* once nothing
unknown is left, or an operator has confirmed what to delete. A record that is damaged counts as that of an empty
volume.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog

from reside.sentinel.store.stacks import write_file

if TYPE_CHECKING:
    from pathlib import Path

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class PruneRecord:
    """The record of one volume.

    Attributes:
        established: whether objects may be deleted without a confirmation.
        deleted: when objects were deleted without a confirmation; Unix times in seconds.
    """

    established: bool
    deleted: tuple[float, ...] = ()


def read_record(path: Path) -> PruneRecord | None:
    """Return the record in a file; None if there is no file."""
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
        return PruneRecord(data["established"] is True, tuple(float(time) for time in data["deleted"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        _log.error(
            "unreadable record of deletions; an operator must confirm the next one", path=str(path), error=repr(error)
        )
        return PruneRecord(established=False)


def write_record(path: Path, record: PruneRecord) -> None:
    """Store a record.

    Raises:
        NotReady: the volume can't be written now; a retry may help.
    """
    document = {"established": record.established, "deleted": list(record.deleted)}
    write_file(path, json.dumps(document).encode())
