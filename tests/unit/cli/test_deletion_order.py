"""A deletion is ordered as it was shown, also if what it removes changes meanwhile."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from reside.cli.replica_deletion import PREVIEWS, order_as_seen, removes_more
from reside.model.errors import Conflict, ResideError


def preview(*objects: str, holds: list[list[Any]] | None = None) -> dict[str, Any]:
    """Return a preview whose revision follows from its content."""
    content = {"name": "quoter", "objects": list(objects), "holds": holds or [], "dependants": []}
    return content | {"revision": repr(content)}


@dataclass
class Alpha:
    """Answers with one preview after the other, and carries out orders of the last one only."""

    previews: list[dict[str, Any]]
    refusal: str | None = None
    shown: list[list[str]] = field(default_factory=list)
    ordered: list[str] = field(default_factory=list)

    async def preview(self) -> dict[str, Any]:
        """Return the current preview."""
        return self.previews[0]

    async def decide(self, seen: Any) -> None:
        """Record what is shown."""
        self.shown.append(seen["objects"])

    async def order(self, revision: str) -> None:
        """Change what the deletion removes, if a further preview follows, and compare the revisions."""
        if len(self.previews) > 1:
            self.previews.pop(0)
        if self.refusal is not None:
            raise Conflict(self.refusal)
        if self.previews[0]["revision"] != revision:
            raise Conflict("what a deletion of quoter removes has changed: look at it again")
        self.ordered.append(revision)

    async def run(self) -> None:
        """Order the deletion."""
        await order_as_seen(self.preview, self.decide, self.order)


def test_a_deletion_that_removes_less_than_was_shown_is_ordered_without_asking_again() -> None:
    alpha = Alpha([preview("Deployment/quoter-2", "Deployment/quoter-3"), preview("Deployment/quoter-2")])
    asyncio.run(alpha.run())
    assert alpha.shown == [["Deployment/quoter-2", "Deployment/quoter-3"]]
    assert alpha.ordered == [preview("Deployment/quoter-2")["revision"]]


def test_a_deletion_that_removes_more_than_was_shown_is_shown_again() -> None:
    alpha = Alpha([preview("Deployment/quoter-2"), preview("Deployment/quoter-2", "Deployment/quoter-3")])
    asyncio.run(alpha.run())
    assert alpha.shown == [["Deployment/quoter-2"], ["Deployment/quoter-2", "Deployment/quoter-3"]]


def test_nothing_is_ordered_if_the_operator_refuses_the_second_preview() -> None:
    alpha = Alpha([preview("Deployment/quoter-2"), preview("Deployment/quoter-2", "Secret/quoter")])

    async def decide(seen: Any) -> None:
        await alpha.decide(seen)
        if len(alpha.shown) == 2:
            raise ResideError("quoter is not deleted: nothing was changed")

    with pytest.raises(ResideError, match="nothing was changed"):
        asyncio.run(order_as_seen(alpha.preview, decide, alpha.order))
    assert alpha.ordered == []


def test_a_refusal_for_another_reason_is_not_repeated() -> None:
    alpha = Alpha([preview("Secret/quoter")], refusal="load request 4 of quoter was approved")
    with pytest.raises(Conflict, match="load request 4"):
        asyncio.run(alpha.run())


def test_a_deletion_that_changes_all_the_time_is_given_up() -> None:
    alpha = Alpha([preview(f"Deployment/quoter-{n}") for n in range(PREVIEWS + 2)])
    with pytest.raises(Conflict, match="wait until the rollout of quoter is complete"):
        asyncio.run(alpha.run())
    assert len(alpha.shown) == PREVIEWS + 1


def test_a_further_permission_is_more() -> None:
    held = preview("Secret/quoter", holds=[[3, "greeting", "greet", ""]])
    assert removes_more(preview("Secret/quoter"), held)
    assert not removes_more(held, preview("Secret/quoter"))
