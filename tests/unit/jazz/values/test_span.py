"""When and by whom a value was created and last edited: only changes that count are considered."""

from __future__ import annotations

from itertools import count

import pytest
from support.jazz_controlled_nodes import detached_group
from unit.jazz.logs import Log

from reside.jazz.values.span import Span
from reside.jazz.wire.dates import ms_of

pytestmark = pytest.mark.anyio


async def test_a_value_has_the_times_and_authors_of_its_changes() -> None:
    times = count(1_700_000_000_000)
    group = detached_group(lambda: next(times))
    value = group.create_map({"a": 1})
    account = group._host.account_id
    created = value.created_at
    assert created is not None
    assert created >= 1_700_000_000_000
    assert (value.created_by, value.last_edited_by) == (account, account)
    first = value.last_edited_at
    assert first is not None
    assert first >= created
    value.set("b", 2)
    assert value.created_at == created
    assert value.last_edited_at is not None
    assert value.last_edited_at > first


async def test_an_empty_value_was_edited_when_it_was_created() -> None:
    group = detached_group(lambda: 1_700_000_000_000)
    feed = group.create_feed()
    assert (feed.created_at, feed.last_edited_at) == (1_700_000_000_000, 1_700_000_000_000)
    assert (feed.created_by, feed.last_edited_by) == (None, None)


def test_transactions_are_processed_once_and_all_of_another_list() -> None:
    log = Log()
    span = Span()
    valid = [log.set("co_zA", 20, "k", 1)]
    span.update(valid, frozenset())
    valid.append(log.set("co_zB", 10, "k", 2))
    span.update(valid, span._losers)
    assert (span.first, span.last) == (valid[1], valid[0])
    span.update([valid[1]], frozenset())
    assert (span.first, span.last) == (valid[1], valid[1])
    span.update([], frozenset())
    assert (span.first, span.last) == (None, None)


def test_losers_and_changes_of_nothing_do_not_count() -> None:
    log = Log()
    valid = [log.set("co_zA", 10, "k", 1), log.set("co_zB", 20, "k", 2), log.add("co_zC", 30, [])]
    span = Span()
    span.update(valid, frozenset({valid[1]}))
    assert (span.first, span.last) == (valid[0], valid[0])


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:00.001Z", 1),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:01", 1000),
        ("yesterday", None),
        ("", None),
        ("99999-01-01T00:00:00Z", None),
    ],
)
def test_the_time_of_a_header_is_a_date_or_absent(text: str, ms: int | None) -> None:
    assert ms_of(text) == ms
