"""What `reside replica graph` shows of requirements."""

from __future__ import annotations

from typing import Any

from reside.cli.graph import dot, edges, tree


def row(number: int, name: str, **requires: list[int]) -> dict[str, Any]:
    found = [{"key": key, "contract": f"c/{key}", "replicas": replicas} for key, replicas in requires.items()]
    return {"id": number, "name": name, "requires": found}


ROWS = [
    row(1, "alpha", sentinel=[2]),
    row(2, "kubernetes-sentinel"),
    row(3, "shop", stock=[4, 5], mail=[]),
    row(4, "stock", store=[6]),
    row(5, "stock-1", store=[6]),
    row(6, "store", disk=[9]),
]


def test_each_replica_is_shown_below_those_that_require_it_and_its_own_requirements_once() -> None:
    assert list(tree(ROWS)) == [
        "alpha",
        "└─ sentinel: kubernetes-sentinel",
        "shop",
        "├─ stock: stock",
        "│  └─ store: store",
        "│     └─ disk: replica 9",
        "├─ stock: stock-1",
        "│  └─ store: store (above)",
        "└─ mail: no replica, and it is optional",
    ]


def test_replicas_that_require_each_other_are_shown_too() -> None:
    rows = [row(1, "a", b=[2]), row(2, "b", a=[1]), row(3, "c", c=[3])]
    assert list(tree(rows)) == ["a", "└─ b: b", "   └─ a: a (above)", "c", "└─ c: c (above)"]


def test_edges_name_key_and_contract() -> None:
    assert edges(ROWS)[0] == {"from": "alpha", "key": "sentinel", "contract": "c/sentinel", "to": "kubernetes-sentinel"}
    assert [edge["to"] for edge in edges(ROWS) if edge["from"] == "shop"] == ["stock", "stock-1", None]


def test_graphviz_gets_quoted_names_and_one_edge_for_each_provider() -> None:
    assert list(dot([row(1, "a-1", b=[2], c=[]), row(2, "b")])) == [
        "digraph replicas {",
        '  "a-1";',
        '  "b";',
        '  "a-1" -> "b" [label="b"];',
        "}",
    ]
