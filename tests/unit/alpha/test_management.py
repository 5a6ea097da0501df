"""Which edits of a replica's management count: those of authorized accounts, well-formed, and not from the future."""

from __future__ import annotations

from typing import Any

from reside.alpha.management import effective_edit
from reside.jazz import Edit
from reside.jazz.ids import SessionId
from reside.model.constants import MADE_AT_TOLERANCE_MS

NOW = 1_000_000
REVOKED = 500


def edit(by: str, value: Any, at: int = 1, *, deleted: bool = False) -> Edit:
    return Edit(by, at, SessionId(f"{by}_session_z1"), value, deleted)


def decided(*history: Edit) -> Any:
    found = effective_edit(history, _may_manage, NOW, lambda value: isinstance(value, bool))
    return None if found is None else found.value


def _may_manage(account: str, at: int) -> bool:
    return account in ("alpha", "admin") or (account == "leaving" and at < REVOKED)


def test_the_last_edit_counts() -> None:
    assert decided(edit("alpha", True), edit("admin", False, 2)) is False


def test_edits_of_an_account_that_may_no_longer_manage_do_not_count() -> None:
    assert decided(edit("alpha", True), edit("removed", False, NOW)) is True


def test_edits_after_a_revocation_do_not_count_and_earlier_ones_do() -> None:
    assert decided(edit("alpha", True), edit("leaving", False, REVOKED - 1)) is False
    assert decided(edit("alpha", True), edit("leaving", False, REVOKED)) is True


def test_malformed_edits_do_not_count() -> None:
    assert decided(edit("alpha", True), edit("admin", "yes", 2), edit("admin", {"a": 1}, 3)) is True


def test_edits_far_in_the_future_do_not_count() -> None:
    assert decided(edit("alpha", True), edit("admin", False, NOW + MADE_AT_TOLERANCE_MS + 1)) is True
    assert decided(edit("alpha", True), edit("admin", False, NOW + MADE_AT_TOLERANCE_MS)) is False


def test_a_deleted_value_has_no_effective_edit() -> None:
    assert decided(edit("admin", False), edit("admin", None, 2, deleted=True)) is None
    assert decided() is None
