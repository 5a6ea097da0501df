"""Wide tables of the site can be read on a phone: their cells know the names of their columns."""

from __future__ import annotations

from tools.docs_tables import on_page_content

ROW = "<table>\n<thead>\n<tr>\n{head}\n</tr>\n</thead>\n<tbody>\n<tr>\n{cells}\n</tr>\n</tbody>\n</table>"


def table(*names: str) -> str:
    head = "\n".join(f"<th>{name}</th>" for name in names)
    return ROW.format(head=head, cells="\n".join(f'<td style="x">{number}</td>' for number in range(len(names))))


def test_a_cell_of_a_wide_table_has_the_name_of_its_column() -> None:
    shown = on_page_content(f"<p>a</p>{table('a', '<code>b</code>', 'c &amp; d')}")
    assert shown.startswith("<p>a</p><table data-wide>")
    assert '<td data-label="a" style="x">0</td>' in shown
    assert '<td data-label="b" style="x">1</td>' in shown
    assert '<td data-label="c &amp; d" style="x">2</td>' in shown


def test_a_narrow_table_stays_as_it_is() -> None:
    assert on_page_content(table("a", "b")) == table("a", "b")
