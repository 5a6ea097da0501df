"""The typed layer without a node: schemas, drafts, validation, and error messages."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from typing import Any, ClassVar, Literal, TypeVar

import pytest

from reside.jazz import Account, CoList, CoMap, Group
from reside.jazz.typed import (
    EACH,
    CoMapModel,
    FeedOf,
    File,
    ListOf,
    RecordOf,
    SchemaError,
    SchemaMismatch,
    Text,
    UnknownField,
    field,
    tolerate,
)
from reside.jazz.typed.codecs import Codec, DateCodec, Misfit
from reside.jazz.typed.errors import describe
from reside.jazz.typed.fields import codec_of
from reside.jazz.typed.resolving import Spec, read_resolve

AT = datetime(2026, 11, 21, 10, 15, 59, 510_999, tzinfo=UTC)


class Color(Enum):
    """Values of an enumeration are used on the wire."""

    RED = "red"


@dataclass(frozen=True)
class Point:
    """A structured value inside a map."""

    x: int
    y: int


class Leaf(CoMapModel):
    """An element without references."""

    name: str


class Tree(CoMapModel):
    """References others and itself."""

    SHOWN: ClassVar[str] = "not a field"

    name: str
    leaf: Leaf
    parent: "Tree | None" = None
    leaves: ListOf[Leaf] = field(default_factory=ListOf)
    by_name: "RecordOf[Tree]" = field(default_factory=RecordOf, key="byName")
    feed: FeedOf[Leaf] = field(default_factory=FeedOf)
    owner: Account | None = None
    members: Group | None = None
    any_map: CoMap | None = None


@pytest.mark.parametrize(
    ("annotation", "value", "wire"),
    [
        (str, "a", "a"),
        (bool, True, True),
        (int, 3, 3),
        (float, 1.5, 1.5),
        (float, 2, 2.0),
        (str | None, None, None),
        (int | str, "a", "a"),
        (Literal["a", 1], 1, 1),
        (Color, Color.RED, "red"),
        (list[int], [1, 2], [1, 2]),
        (tuple[int, str], (1, "a"), [1, "a"]),
        (dict[str, bool], {"a": True}, {"a": True}),
        (Point, Point(1, 2), {"x": 1, "y": 2}),
        (datetime, AT.replace(microsecond=510_000), "2026-11-21T10:15:59.510Z"),
        (datetime | None, None, None),
        (Any, {"a": [None]}, {"a": [None]}),
    ],
)
def test_values_are_json_on_the_wire_and_round_trip(annotation: Any, value: Any, wire: Any) -> None:
    codec = codec_of(annotation, "T.f")
    assert codec.encode(value) == wire
    assert codec.decode(wire) == value
    assert codec.takes_none == (annotation in (str | None, datetime | None, Any))


@pytest.mark.parametrize(
    ("annotation", "wire", "found"),
    [
        (str, 1, "a number"),
        (str, None, "null"),
        (bool, 1, "a number"),
        (int, True, "a boolean"),
        (int, 1.5, "a number"),
        (float, "1", "a text of 1 characters"),
        (Literal["a"], "secret", "a text of 6 characters"),
        (Color, "blue", "a text of 4 characters"),
        (list[int], ["a"], "an array of 1 items, which does not fit at 0"),
        (Point, {"x": 1}, "an object with 1 members, which does not fit at y"),
        (datetime, 5, "a number"),
        (datetime, "soon", "a text of 4 characters that is not a date"),
        (datetime, None, "null"),
        (Leaf, 1, "a number"),
        (Leaf, "x", "a text of 1 characters that is not an id"),
        (Leaf, None, "null"),
    ],
)
def test_invalid_content_is_reported_by_kind_and_never_by_content(annotation: Any, wire: Any, found: str) -> None:
    with pytest.raises(Misfit) as misfit:
        codec_of(annotation, "T.f").decode(wire)
    assert misfit.value.found == found


def test_whole_numbers_of_javascript_are_integers() -> None:
    assert codec_of(int, "T.f").decode(1e21) == 10**21


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        (AT.astimezone(timezone(timedelta(hours=2))), "2026-11-21T10:15:59.510Z"),
        (datetime(7, 1, 2, tzinfo=UTC), "0007-01-02T00:00:00.000Z"),
    ],
)
def test_dates_are_written_as_javascript_writes_them(value: datetime, wire: str) -> None:
    assert DateCodec(takes_none=False).encode(value) == wire


@pytest.mark.parametrize(("value", "found"), [(datetime(2026, 1, 1), "without a time zone"), (1, "a number")])  # noqa: DTZ001 - it is what is tested
def test_a_date_needs_a_time_zone(value: Any, found: str) -> None:
    with pytest.raises(Misfit, match=found):
        DateCodec(takes_none=True).encode(value)


def test_every_type_has_a_description() -> None:
    assert [describe(one) for one in (None, True, 1, "a", {}, [], object())] == [
        "null",
        "a boolean",
        "a number",
        "a text of 1 characters",
        "an object with 0 members",
        "an array of 0 items",
        "a Python object",
    ]


def test_a_draft_has_its_values_and_its_defaults() -> None:
    tree = Tree(name="t", leaf=Leaf(name="l"))
    assert tree.is_draft
    assert repr(tree) == "<Tree draft>"
    assert (tree.name, tree.leaf.name, tree.parent, len(tree.leaves), len(tree.by_name)) == ("t", "l", None, 0, 0)
    tree.name = "u"
    tree.update(parent=Tree(name="p", leaf=Leaf(name="l")))
    tree.leaves.extend([Leaf(name="a"), Leaf(name="c")])
    tree.leaves.insert(1, Leaf(name="b"))
    del tree.leaves[2]
    tree.by_name["x"] = tree
    tree.by_name["y"] = tree
    del tree.by_name["y"]
    tree.feed.push(Leaf(name="f"))
    assert tree.parent is not None
    assert (tree.name, tree.parent.name, [leaf.name for leaf in tree.leaves]) == ("u", "p", ["a", "b"])
    assert [leaf.name for leaf in tree.leaves[1:]] == [leaf.name for leaf in tree.leaves.loaded()[1:]] == ["b"]
    assert (list(tree.by_name), tree.by_name.get("x"), tree.by_name.get("z"), len(tree.feed)) == (["x"], tree, None, 1)
    del tree.parent
    assert tree.parent is None
    assert tree.as_dict()["leaf"] is None
    assert tree != Tree(name="u", leaf=tree.leaf)
    with pytest.raises(TypeError, match="a draft has no hash before create"):
        hash(tree)


@pytest.mark.anyio
async def test_a_file_is_a_draft_too() -> None:
    file = File(b"abc", name="a")
    assert file.info is not None
    assert (await file.read(), file.info.size, file.info.name) == (b"abc", 3, "a")


def test_a_text_is_a_draft_too() -> None:
    text = Text("a")
    text.apply("ab")
    assert (str(text), len(text), text.is_draft) == ("ab", 2, True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Tree(name="t"), "a new Tree needs leaf"),
        (lambda: Tree(nam="t"), "Tree has no field nam"),
        (lambda: Tree(name="t", leaf=Leaf(name="l")).update(nam=1), "Tree has no field nam"),
        (lambda: Tree(name="t", leaf=Leaf(name="l")).id, "this Tree is a draft: it has no value before create"),
        (lambda: ListOf(["a"])._item_codec(), r"give the type of its items, for example ListOf\[str\]"),
        (lambda: ListOf[str](["a"]).each, "is valid only in a resolve function"),
        (lambda: setattr(Leaf(name="l"), "nam", 1), "Leaf has no field nam; its fields: name"),
        (lambda: setattr(Leaf(name="l"), "inline", "new"), "Leaf has no field inline; its fields: name"),
        (lambda: Leaf(name="l").get("nam"), "Leaf has no field nam"),
        (lambda: Leaf(name="l").unset("nam"), "Leaf has no field nam"),
        (lambda: Leaf(name="l").id_of("nam"), "Leaf has no field nam"),
        (lambda: getattr(Leaf(name="l"), "nam"), "Leaf has no field nam"),  # noqa: B009 - mypy knows that it is not there
        (lambda: tolerate(3), "expects a reference"),
    ],
)
def test_wrong_use_is_an_error_with_the_reason(make: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        make()


def test_an_unknown_name_is_also_an_attribute_error_that_names_model_and_field() -> None:
    leaf = Leaf(name="l")
    assert not hasattr(leaf, "nam")
    with pytest.raises(AttributeError) as refused:
        leaf.nam = 1  # type: ignore[attr-defined] # it is what is tested
    assert isinstance(refused.value, UnknownField)
    assert (refused.value.model, refused.value.field) == ("Leaf", "nam")


@pytest.mark.parametrize(
    ("make", "field_name", "message"),
    [
        (lambda: Leaf(name=1), "Leaf.name", "Leaf.name must be a text, found a number"),
        (lambda: Tree(name="t", leaf=None), "Tree.leaf", "must be a reference to a Leaf, found null"),
        (lambda: Tree(name="t", leaf=Tree(name="", leaf=Leaf(name=""))), "Tree.leaf", "found a draft of Tree"),
        (lambda: Tree(name="t", leaf="co_zX"), "Tree.leaf", "found a text of 5 characters"),
        (lambda: ListOf[str]([1]), "ListOf[str][…]", "must be a text, found a number"),
        (lambda: ListOf[str](["a"]).append(1), "ListOf[str][…]", "must be a text"),
        (lambda: RecordOf[str]({"k": 1}), "RecordOf[str]['k']", "must be a text"),
        (lambda: FeedOf[str]([1]), "FeedOf[str][…]", "must be a text"),
        (lambda: FeedOf[str]().push(1), "FeedOf[str][…]", "must be a text"),
        (lambda: Tree(name="t", leaf=Leaf(name="l"), leaves=ListOf([1])), "ListOf[Leaf][…]", "found a number"),
        (lambda: Tree(name="t", leaf=Leaf(name="l"), leaves=ListOf[str]()), "Tree.leaves", "found a draft of ListOf"),
    ],
)
def test_an_invalid_draft_is_refused_immediately(make: Any, field_name: str, message: str) -> None:
    with pytest.raises(SchemaMismatch) as refused:
        make()
    assert refused.value.field == field_name
    assert message in str(refused.value)
    assert (refused.value.value, refused.value.group, refused.value.role) == (None, None, None)


def test_a_refused_update_of_a_draft_changes_nothing() -> None:
    leaf = Leaf(name="a")
    with pytest.raises(SchemaMismatch):
        leaf.name = 1  # type: ignore[assignment] # it is what is tested
    assert leaf.name == "a"


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (list[Leaf], "can't contain the Jazz value Leaf: use Leaf, or ListOf"),
        (asyncio.Task, "can't be represented in JSON"),
        (CoList | CoMap, "a union may contain only maps.* not CoList or CoMap"),
    ],
)
def test_a_field_that_has_no_form_on_the_wire_is_refused(annotation: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        codec_of(annotation, "T.f")


def test_a_field_may_not_take_the_name_of_a_method() -> None:
    with pytest.raises(
        SchemaError, match=r"Bad\.id: the name is reserved; choose another one and set field\(key='id'\)"
    ):

        class Bad(CoMapModel):
            id: int  # type: ignore[assignment] # it is what is tested


def test_an_unknown_name_in_an_annotation_is_reported() -> None:
    class Bad(CoMapModel):
        other: "Nowhere"  # type: ignore[name-defined] # noqa: F821 - it is what is tested

    with pytest.raises(SchemaError, match=r"Bad\.other: the name Nowhere is not defined"):
        Bad._schema()


def _two_of_one_name() -> tuple[type[CoMapModel], type[CoMapModel]]:
    def first() -> type[CoMapModel]:
        class Holder(CoMapModel):
            inner: ListOf["Twin"]

        class Twin(CoMapModel):
            one: int

        Holder._schema()
        return Holder

    def second() -> type[CoMapModel]:
        class Holder(CoMapModel):
            inner: "ListOf[Twin] | None"

        class Twin(CoMapModel):
            two: int

        Holder._schema()
        return Holder

    return first(), second()


def test_a_name_means_the_class_beside_it() -> None:
    """Even if another function has a class of the same name."""
    named = []
    for holder in _two_of_one_name():
        (listed,) = holder._references()["inner"].targets
        (twin,) = listed._references()[EACH].targets  # type: ignore[attr-defined] # a ListOf
        named.append(list(twin._schema()))
    assert named == [["one"], ["two"]]


def test_classes_inside_functions_may_name_each_other_and_inherit() -> None:
    class Inner(CoMapModel):
        outer: "Outer | None" = None

    class Outer(Inner, inline="same"):
        inners: ListOf["Inner"] = field(default_factory=ListOf)

    assert list(Outer._schema()) == ["outer", "inners"]
    assert Outer._references()["inners"].targets[0]._item_codec().targets == (Inner,)  # type: ignore[attr-defined] # a ListOf
    assert (Inner.inline, Outer.inline, Outer(outer=Outer()).outer is None) == ("extend", "same", False)
    made: ListOf[Inner] = ListOf[Inner]([])
    assert type(made).__name__ == "ListOf[Inner]"
    assert ListOf[Inner] is ListOf[Inner]


T = TypeVar("T")


class _Generic(ListOf[T]):
    """A list whose element type is named later."""


def test_a_generic_subclass_keeps_its_type_variable() -> None:
    assert list(_Generic[str](["a"])) == ["a"]


def _names(spec: Spec) -> dict[str, Any]:
    return {name: _names(below) for name, below in spec.names.items()}


def test_resolves_as_functions_and_as_mappings_are_equal() -> None:
    by_function = read_resolve(
        Tree, lambda tree: (tree.leaf, tree.parent and tree.parent.leaves.each, tree.by_name["x"].leaf, tree.owner)
    )
    by_mapping = read_resolve(
        Tree, {"leaf": True, "parent": {"leaves": {"$each": True}}, "by_name": {"x": {"leaf": {}}}, "owner": True}
    )
    expected: dict[str, Any] = {
        "leaf": {},
        "parent": {"leaves": {EACH: {}}},
        "by_name": {"x": {"leaf": {}}},
        "owner": {},
    }
    assert _names(by_function) == _names(by_mapping) == expected
    assert _names(read_resolve(Tree, True)) == _names(read_resolve(Tree, None)) == {}
    assert _names(read_resolve(ListOf[Tree], {"each": {"leaf": True}})) == {EACH: {"leaf": {}}}


def test_a_reference_may_be_tolerated_in_both() -> None:
    by_function = read_resolve(Tree, lambda tree: tolerate(tree.leaves.each))
    by_mapping = read_resolve(Tree, {"leaves": {"$each": {"$onError": "catch"}}})
    for spec in (by_function, by_mapping):
        assert [spec.tolerant, spec.names["leaves"].tolerant, spec.names["leaves"].names[EACH].tolerant] == [
            False,
            False,
            True,
        ]


@pytest.mark.parametrize(
    ("resolve", "message"),
    [
        (lambda tree: tree.name, "Tree has no reference name to resolve; it has: leaf, parent, leaves"),
        (lambda tree: tree.leaf.x, r"Tree\.leaf has no reference x to resolve; it has: none"),
        (lambda tree: tree.leaves[0], r"Tree\.leaves: all items of a list are loaded: write \.each"),
        ({"leaf": 1}, r"a resolve of Tree\.leaf is True or a mapping"),
        ({"nope": True}, "Tree has no reference nope"),
        ({"owner": {"x": True}}, r"Tree\.owner has no reference x"),
    ],
)
def test_resolving_a_field_that_is_not_a_reference_is_refused(resolve: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        read_resolve(Tree, resolve)


def test_codecs_implement_their_protocol() -> None:
    codecs: list[Codec] = [codec_of(kind, "T.f") for kind in (str, str | int, datetime, Leaf)]
    assert all(codec.expected for codec in codecs)
