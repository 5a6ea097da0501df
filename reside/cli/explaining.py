"""`reside explain`: what an error code, a status, a reason or a rule means, and what to do about it."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

import typer

from reside.cli import listing, output
from reside.cli.explanations import explain as find
from reside.cli.explanations import explanations
from reside.cli.listing import Column, ListOptions
from reside.cli.shared_options import with_options
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from reside.cli.explanation import Explanation

COLUMNS = (Column("code"), Column("topic"), Column("cure", wide=True), Column("meaning"))


@with_options(ListOptions)
def explain(
    code: Annotated[
        str | None, typer.Argument(help="Code, status, reason or rule, or the text of a reason; all if not given.")
    ] = None,
    *,
    options: ListOptions,
) -> None:
    """Explain an error code, a status, a reason or a rule of the policy, and what to do about it."""
    if code is None:
        listing.show([each.document() for each in explanations()], COLUMNS, options, "code")
        return
    found = find(code)
    if not found:
        raise InvalidInput(f"nothing is known about {code!r}{_similar(code)}: `reside explain` lists all codes")
    if options.format_ is not listing.Format.table:
        listing.show([each.document() for each in found], COLUMNS, options, "code")
        return
    for line in ("\n\n".join(_text(each) for each in found)).splitlines():
        output.console.print(line, markup=False, highlight=False)


def _text(found: Explanation) -> str:
    return f"{found.code}: {found.topic}\n{found.meaning}\nCure: {found.cure}"


def _similar(code: str) -> str:
    known = {each.code.casefold(): each.code for each in explanations()}
    near = get_close_matches(code.casefold(), known, n=1)
    return f", perhaps you mean {known[near[0]]}" if near else ""
