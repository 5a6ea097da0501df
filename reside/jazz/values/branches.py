"""Making, loading and merging branches of a value; `reside.jazz.values.branching` has their format.

The id of a branch follows from its source, its owner and its name, so clients that make the same branch concurrently
make one. A merge copies what was not merged before, so repeating it changes nothing. Concurrent merges copy the same
change twice: in maps, lists and texts both copies are the same assignment, insertion or deletion.
"""

from typing import TYPE_CHECKING, TypeVar

from reside.jazz.errors import InvalidArgument, ValueNotFound
from reside.jazz.values.branching import (
    merge_meta,
    merged_from,
    pointer_meta,
    points_to,
    start_meta,
    start_of,
    unmerged,
)
from reside.jazz.wire.header import Header, branch_header

if TYPE_CHECKING:
    from reside.jazz.groups.group import Group
    from reside.jazz.values.owned import OwnedValue
    from reside.jazz.wire.session import Transaction

V = TypeVar("V", bound="OwnedValue")


async def load_or_make(value: V, name: str, owner: "Group | None", timeout: float) -> V:  # noqa: ASYNC109 - as Node.load
    """Return the branch of a value; see `OwnedValue.branch`."""
    header = branch_header(_source_header(value), (owner or value.group).id, name)
    host, kind = value._host, type(value)
    default = value.group.id
    is_known = host.find(header.co_id) is not None  # an empty map is false
    if is_known or points_to(name, header.owner or default, value._content.counting(), default=default):
        try:
            branch = await host.load_as(header.co_id, kind, timeout=timeout)
        except ValueNotFound:
            pass  # its maker wrote the pointer, but has not uploaded the branch
        else:
            if start_of(branch._content.counting()) is None:
                # Anyone can compute the id, and upload a branch that starts nowhere.
                branch._write([], start_meta(value._core.counts()))
            return branch
    return _make(value, header, name, owner)


def merge(branch: "OwnedValue") -> None:
    """Merge a branch into its source; see `OwnedValue.merge`."""
    source = branch.source
    if source is None:
        raise InvalidArgument(f"{branch.id} is not a branch, so it can't be merged")
    merged = merged_from(branch.id, source._content.counting())
    last: Transaction | None = None
    for item in unmerged(branch._content.counting(), merged):
        source._write_copy(item, last)
        last = item
    if last is not None:
        source._write([], merge_meta(branch.id, branch._core.counts(), merged))


def _make(value: V, header: Header, name: str, owner: "Group | None") -> V:
    role = value.group.my_role
    if role is None or (role == "reader" and owner is None):
        raise value._refuse("make a branch of", "reader, and a group of its own for the branch; or writer")
    branch: V = value._host.creator.branch(header, type(value))
    branch._write([], start_meta(value._core.counts()))
    pointer = pointer_meta(name, None if owner is None else owner.id)
    if role == "reader":
        value._host.writer.plain(value._core, pointer, latest=0)
    else:
        value._write([], pointer)
    return branch


def _source_header(value: "OwnedValue") -> Header:
    header = value._core.header
    if header is None or header.owner is None or header.is_file:
        raise InvalidArgument(f"{value.id} can't have branches: it is a file, or no group owns it")
    return header
