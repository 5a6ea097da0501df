"""Types of contracts in TypeScript: they compile, and zod accepts what the JSON Schemas accept.

tests/unit/build has the same for Python.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema_rs
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support.contract_schemas import EVIL, contracts, documents

from reside.build.contract_types import write_types
from reside.build.contract_types.contract import read_types
from reside.build.language import Language
from reside.model.manifest import ContractManifest

if TYPE_CHECKING:
    from support.typescript import TypeScript

CONTRACTS, DOCUMENTS = 40, 8
CHECK = """
import { readFileSync } from "node:fs";

const cases = JSON.parse(readFileSync(new URL("cases.json", import.meta.url), "utf8"));
for (const { module, type, document, valid } of cases) {
  const types = await import(`./${module}`);
  if (types[type].safeParse(document).success !== valid) console.log(JSON.stringify({ module, type, document, valid }));
}
console.log(`${cases.length} cases`);
"""

SHOW = """
import { deleteContract as made } from "./evil.ts";

console.log(JSON.stringify([made.methods, made.permissions].map(Object.keys)));
"""


def test_modules_compile_and_accept_what_the_schemas_accept_and_text_stays_text(typescript: TypeScript) -> None:
    modules: list[str] = []
    cases: list[dict[str, Any]] = []

    @settings(max_examples=CONTRACTS, derandomize=True, database=None, phases=[Phase.generate], deadline=None)
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        described = data.draw(contracts())
        manifest = ContractManifest.model_validate(described)
        types = read_types(manifest)
        (method,) = described["methods"].values()
        (permission,) = described["permissions"].values()
        parts = (types.methods[0].body, types.methods[0].returns, types.permissions[0].params)
        found = []
        for type_, schema in zip(parts, (method["body"], method["returns"], permission["params"]), strict=True):
            validator = jsonschema_rs.validator_for(schema)
            for _ in range(DOCUMENTS):
                document = data.draw(documents(schema, schema))
                case = {"module": f"c{len(modules)}.ts", "type": type_, "document": document}
                found.append({**case, "valid": validator.is_valid(document)})
        cases.extend(found)  # a draw that fails ends the function
        modules.append(write_types(manifest, Language.typescript))

    collect()
    assert {case["valid"] for case in cases} == {True, False}
    files = {f"c{number}.ts": text for number, text in enumerate(modules)}
    manifest = evil_manifest()
    files |= {"evil.ts": write_types(manifest, Language.typescript), "show.ts": SHOW}
    folder = typescript.compile({**files, "cases.json": json.dumps(cases), "check.mjs": CHECK}, "generated")
    assert typescript.run("node", "--no-warnings", str(folder / "check.mjs")) == f"{len(cases)} cases\n"
    shown = json.loads(typescript.run("node", "--no-warnings", str(folder / "show.ts")))
    assert [sorted(names) for names in shown] == [sorted(manifest.methods), sorted(manifest.permissions)]


def evil_manifest() -> ContractManifest:
    """Return a contract whose names and texts try to be code."""
    methods, permissions = ({f"{text}{number}": {} for number, text in enumerate(EVIL)} for _ in range(2))
    for name, each in methods.items():
        each["displayInfo"] = {"en": {"title": name}}
    identity = "registry.example/contracts/delete.v1"
    return ContractManifest.model_validate(
        {"type": "contract", "identity": identity, "methods": methods, "permissions": permissions}
    )
