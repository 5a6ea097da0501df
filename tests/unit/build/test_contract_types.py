"""Types of contracts: what is generated accepts what the schema accepts, and contains nothing that was not escaped.

The random contracts are the same in each run, so that a failure has its cause in a change.
"""

from __future__ import annotations

import ast
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from support.contract_schemas import EVIL, contracts, documents, names

from reside.build.contract_types import write_types
from reside.build.contract_types.contract import read_types
from reside.build.language import Language
from reside.model.errors import InvalidManifest
from reside.model.manifest import ContractManifest

ROOT = {"type": "object"}


def manifest(body: Any = None, **members: Any) -> ContractManifest:
    """Return a contract with one method."""
    methods = {} if body is None else {"say": {"body": body}}
    return ContractManifest.model_validate(
        {"type": "contract", "identity": "registry.example/talk.v1", "methods": methods, **members}
    )


def member(schema: Any, **members: Any) -> ContractManifest:
    """Return a contract whose body has the member `it`."""
    return manifest({"type": "object", "properties": {"it": schema}, **members})


def models(contract: ContractManifest) -> dict[str, Any]:
    """Run the generated module in Python, and return what it defines."""
    defined: dict[str, Any] = {"__name__": "generated"}
    code = compile(write_types(contract, Language.python), "generated", "exec", dont_inherit=True)
    exec(code, defined)  # noqa: S102 - it is what is tested
    return defined


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.data())
def test_the_models_accept_what_the_schemas_accept_and_write_it_back(data: st.DataObject) -> None:
    described = data.draw(contracts())
    contract = ContractManifest.model_validate(described)
    (method,) = described["methods"].values()
    types, defined = read_types(contract), models(contract)
    assert defined["CONTRACT"].identity == contract.identity
    schemas = {
        types.methods[0].body: method["body"],
        types.methods[0].returns: method["returns"],
        types.permissions[0].params: next(iter(described["permissions"].values()))["params"],
    }
    for name, schema in schemas.items():
        validator = jsonschema_rs.validator_for(schema)
        for _ in range(4):
            document = data.draw(documents(schema, schema))
            assert accepts(defined[str(name)], document) == validator.is_valid(document), document
            if validator.is_valid(document):
                written = defined[str(name)].model_validate(document).model_dump(mode="json", by_alias=True)
                assert validator.is_valid(written), written


@pytest.mark.parametrize(
    "options",
    [
        [{"$ref": "#/$defs/shared"}, {"type": "integer"}],
        [{"type": "integer"}, {"$ref": "#/$defs/shared"}, {"type": "null"}],
        [{"$ref": "#/$defs/nullable"}, {"type": "integer"}],
        [{"type": "array", "items": {"$ref": "#/$defs/shared"}}, {"type": "array", "items": {"type": "integer"}}],
        [{"$ref": "#/$defs/anything"}, {"type": "integer"}],
    ],
)
def test_types_that_are_equal_but_for_their_names_are_one_option(options: list[Any]) -> None:
    """Python merges them, and then refused the mode of a union for what was left."""
    shared = {"shared": {"type": "integer"}, "nullable": {"type": ["integer", "null"]}, "anything": {}}
    contract = member({"type": "array", "items": {"anyOf": options}}, **{"$defs": shared})
    defined = models(contract)
    schema = contract.methods["say"].body
    for it in (1, None, [2], "text"):
        expected = jsonschema_rs.validator_for(schema).is_valid({"it": [it]})
        assert accepts(defined["SayBody"], {"it": [it]}) == expected, it


@pytest.mark.parametrize("shared", [{"type": "null"}, {"type": ["integer", "null"]}, {}, {"type": "integer"}])
def test_an_optional_member_may_have_a_shared_type_that_is_null(shared: Any) -> None:
    defined = models(member({"$ref": "#/$defs/shared"}, **{"$defs": {"shared": shared}}))
    assert accepts(defined["SayBody"], {})
    assert accepts(defined["SayBody"], {"it": None}) == (shared != {"type": "integer"})


def accepts(model: type[BaseModel], document: Any) -> bool:
    """Return whether a model accepts a document."""
    try:
        model.model_validate(document)
    except ValidationError:
        return False
    return True


@settings(max_examples=15, deadline=None, derandomize=True)
@given(contracts())
def test_a_module_in_python_consists_of_declarations_alone(described: dict[str, Any]) -> None:
    text = write_types(ContractManifest.model_validate(described), Language.python)
    assert text.isascii()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) in {"Field", "contract"}
        assert not isinstance(node, ast.Attribute | ast.FunctionDef | ast.Lambda)


@pytest.mark.parametrize("evil", EVIL)
def test_text_of_a_contract_ends_no_literal_and_no_comment(evil: str) -> None:
    text = {"displayInfo": {"en": {"title": evil, "description": evil}}}
    body = {"type": "object", "properties": {evil: {"enum": [evil], "title": evil}}, "required": [evil]}
    contract = manifest(methods={evil: {"body": body, **text}}, permissions={evil: text})
    assert models(contract)["CONTRACT"].methods.keys() == {evil}
    written = write_types(contract, Language.typescript)
    assert written.isascii()
    expected = write_types(manifest(methods={"say": {"body": body}}, permissions={"say": {}}), Language.typescript)
    assert abs(written.count("\n") - expected.count("\n")) <= 2


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "string", "pattern": "^a"}, "methods/say/body/properties/it: pattern: this keyword is not supported"),
        ({"oneOf": [{"type": "string"}]}, "it: oneOf: this keyword is not supported"),
        ({"type": "array", "items": {"not": {}}}, "properties/it/items: not: this keyword is not supported"),
        ({"type": "string", "minimum": 1}, "it: minimum: this keyword is not supported"),
        ({"type": "text"}, "it: type: it is not one of"),
        ({"type": []}, "it: type: it is not one of"),
        ({"type": "integer", "minimum": 2**60}, "it: minimum: it is not a number that every language reads alike"),
        ({"type": "integer", "maximum": True}, "it: maximum: it is not a number"),
        ({"type": "string", "minLength": -1}, "it: minLength: it is not a size"),
        ({"type": "array", "maxItems": 1.5}, "it: maxItems: it is not a size"),
        ({"enum": [1]}, "it: enum: values are strings only"),
        ({"enum": []}, "it: enum: values are strings only"),
        ({"type": ["string", "null"], "enum": ["a"]}, "it: enum: values are strings only"),
        ({"const": None}, "it: const: values are strings only"),
        ({"type": "boolean", "const": True}, "it: const: this keyword is not supported"),
        ({"anyOf": []}, "it: anyOf: it is not a list of schemas"),
        ({"$ref": "https://registry.example/schema"}, r"it: \$ref: it is not of the form"),
        ({"$ref": "#/$defs/none"}, r"it: \$ref: the schema does not define it"),
        ({"$ref": "#"}, r"it: \$ref: it is not of the form"),
        (False, "it: this is not a schema"),
        ("text", "it: this is not a schema"),
        ({"type": "string", "default": {}}, "it: default: it is not a string, a number"),
        ({"type": "string", "default": 1}, "it: default: it does not match its own schema"),
        ({"type": "object", "properties": []}, "it: properties: it is not an object of schemas"),
        ({"type": "object", "properties": {}, "required": ["a"]}, "it: required: it names 'a'"),
        ({"type": "object", "properties": {"a": True}, "additionalProperties": {}}, "it: additionalProperties: it"),
    ],
)
def test_what_not_all_languages_can_represent_is_refused_with_its_place(schema: Any, message: str) -> None:
    for language in Language:
        with pytest.raises(InvalidManifest, match=message):
            write_types(member(schema), language)


@pytest.mark.parametrize("name", ["__proto__", "constructor", "toString", "hasOwnProperty"])
def test_a_member_that_every_object_of_javascript_has_is_refused(name: str) -> None:
    with pytest.raises(InvalidManifest, match=f"methods/say/body/properties/{name}: JavaScript has no such member"):
        write_types(manifest({"type": "object", "properties": {name: True}}), Language.typescript)
    for part in ("methods", "permissions"):
        if name in {"__proto__", "constructor"}:
            with pytest.raises(InvalidManifest, match=f"{part}/{name}: JavaScript has no such member"):
                write_types(manifest(**{part: {name: {}}}), Language.python)


@pytest.mark.parametrize(
    "defined",
    [
        {"a": {"$ref": "#/$defs/a"}},
        {"a": {"type": "array", "items": {"$ref": "#/$defs/b"}}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}},
    ],
)
def test_a_schema_that_refers_to_itself_is_refused(defined: dict[str, Any]) -> None:
    with pytest.raises(InvalidManifest, match="the schema refers to itself"):
        write_types(member({"$ref": "#/$defs/a"}, **{"$defs": defined}), Language.typescript)


def test_schemas_that_are_too_large_or_too_deep_are_refused() -> None:
    deep: Any = {"type": "string"}
    for _ in range(40):
        deep = {"type": "array", "items": deep}
    with pytest.raises(InvalidManifest, match="more than 32 levels"):
        write_types(member(deep), Language.typescript)
    with pytest.raises(InvalidManifest, match="more than 5000 types"):
        write_types(member({"anyOf": [True] * 6000}), Language.typescript)


def test_definitions_that_double_each_other_are_written_once_each() -> None:
    """Expanded, they would be 2**13 types."""
    defined = {"d0": {"type": "string"}}
    for number in range(1, 14):
        half = {"$ref": f"#/$defs/d{number - 1}"}
        defined[f"d{number}"] = {"type": "object", "properties": {"a": half, "b": half}}
    written = write_types(member({"$ref": "#/$defs/d13"}, **{"$defs": defined}), Language.python)
    assert written.count("class ") == 14


def test_a_body_that_is_no_object_is_refused() -> None:
    with pytest.raises(InvalidManifest, match='methods/say/body: "type" must be "object"'):
        write_types(manifest({"type": "array"}), Language.python)


def test_values_that_are_not_json_are_refused() -> None:
    """A manifest in YAML may have them."""
    for value in (object(), "\ud800"):
        with pytest.raises(InvalidManifest, match="is not JSON"):
            write_types(member({"type": "string", "title": value}), Language.typescript)


def test_a_member_that_may_be_missing_is_no_null_and_is_not_written() -> None:
    defined = models(manifest({"type": "object", "properties": {"it": {"type": "string"}, "other": {"type": "null"}}}))
    say = defined["SayBody"]
    assert say.model_validate({}).it is None
    assert say().model_dump(mode="json", by_alias=True) == {}
    assert say(it="a").model_dump() == {"it": "a"}
    with pytest.raises(ValidationError, match="may be missing, but is null: leave it out"):
        say.model_validate({"it": None})


def test_names_do_not_depend_on_the_language_and_are_used_once() -> None:
    body = {"type": "object", "properties": {"a-b": {"type": "object", "properties": {"c": True}}}}
    contract = manifest(methods={"say": {"body": body}, "Say": {"body": body}, "9": {"body": ROOT}})
    for language in Language:
        text = write_types(contract, language)
        for name in ("SayBodyAB", "SayBody", "SayBodyAB2", "SayBody2", "T9Body"):
            assert f" {name}" in text


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.lists(names, max_size=6, unique=True))
def test_attributes_are_identifiers_and_all_different(given_names: list[str]) -> None:
    defined = models(manifest({"type": "object", "properties": dict.fromkeys(given_names, True)}))
    fields = defined["SayBody"].model_fields
    assert {name if field.alias is None else field.alias for name, field in fields.items()} == set(given_names)
