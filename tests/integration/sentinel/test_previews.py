"""Previews name values and live versions, are kept current, and show nobody a secret."""

import asyncio
import base64
import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from integration.sentinel.setup import Setup
from support.eventually import eventually
from support.sentinel import config_map, get, metadata, service, workload

from reside.local import ClusterInfo
from reside.model.constants import SECRET_REFERENCES_ANNOTATION
from reside.model.sentinel_data import VALUES

pytestmark = pytest.mark.anyio

OLD, NEW = "correct-horse", "battery-staple"


def secret(target: str) -> dict[str, Any]:
    references = {SECRET_REFERENCES_ANNOTATION: json.dumps({"key": target})}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata("web", **references), "type": "Opaque"}


async def test_a_preview_names_values_and_live_versions_and_is_renewed_when_one_of_them_moves(
    cluster: ClusterInfo, setup: Setup
) -> None:
    """Nobody but the author of the candidate can read the values, and no value of a Secret is among them."""

    async def live() -> dict[str, Any]:
        found = await asyncio.to_thread(get, cluster, setup.namespace, "ConfigMap/a")
        assert found is not None
        return dict(found["metadata"])

    async with setup.running():
        alpha = await setup.alpha()
        before, after = [secret(alpha.group.create_map({"value": value}).id) for value in (OLD, NEW)]
        web = service("web")
        await alpha.applied(await alpha.declare("demo", config_map("a", x="1"), config_map("b", x="1"), web, before))
        changed = copy.deepcopy(web)
        changed["spec"]["ports"][0]["port"] = 81
        result = await alpha.ask("one", "demo", config_map("a", x="2"), changed, after)
        assert result["error"] is None
        values = (await alpha.node.load_map(result[VALUES])).as_dict()
        assert values["ConfigMap/a"] == [{"path": "data.x", "before": "1", "after": "2"}]
        assert values["Service/web"] == [{"path": "spec.ports[0].port", "before": 80, "after": 81}]
        assert {"path": "data.key", "before": "***", "after": "***"} in values["Secret/web"]
        assert values["ConfigMap/b"][0]["before"]["data"] == {"x": "1"}
        shown = json.dumps([result, values])
        for text in (OLD, NEW):
            assert text not in shown
            assert base64.b64encode(text.encode()).decode() not in shown
        versions = {change["object"]: change["live"] for change in result["changes"]}
        meta = await live()
        assert versions["ConfigMap/a"] == f"{meta['uid']} version {meta['resourceVersion']}"
        async with setup.other("ConfigMap") as other:
            seen = await eventually("the result", lambda: other.results.get("one"), lambda found: found is not None)
            assert seen["changes"] == result["changes"]
            assert (await other.node.load_map(seen[VALUES])).as_dict() == {}
        await alpha.applied(await alpha.declare("demo", config_map("a", x="3"), config_map("b", x="1"), web, before))
        moved = (await live())["resourceVersion"]

        def is_renewed(found: Any) -> bool:
            named = {change["object"]: change["live"] for change in found["changes"]} if found else {}
            return str(named.get("ConfigMap/a")).endswith(f" version {moved}")

        renewed = await eventually("another preview", lambda: alpha.results.get("one"), is_renewed)
        values = (await alpha.node.load_map(renewed[VALUES])).as_dict()
        assert values["ConfigMap/a"] == [{"path": "data.x", "before": "3", "after": "2"}]


async def test_advisory_rules_are_shown_in_preview_and_report_and_those_that_settings_make_mandatory_refuse(
    setup: Setup,
) -> None:
    house = {"id": "house", "kinds": ["ConfigMap"], "path": "data.owner", "present": True}
    house |= {"reason": "Somebody must know it.", "cure": "name the owner"}
    policy = {"levels": {"run-as-non-root": "mandatory"}, "rules": [house]}
    strict = replace(setup, settings=setup.settings.model_copy(update={"policy": policy}))
    async with strict.running():
        alpha = await setup.alpha()
        message = "data.owner is missing: name the owner"
        result = await alpha.ask("one", "demo", config_map("a", x="1"))
        advice = {"rule": "house", "object": "ConfigMap/a", "message": message, "reason": "Somebody must know it."}
        assert (result["violations"], result["advice"]) == ([], [advice])
        report = await alpha.applied(await alpha.declare("demo", config_map("a", x="1")))
        assert report["advice"] == [f"ConfigMap/a should obey house (advisory): {message}"]
        await alpha.declare("web", workload("Deployment", "web", "web"))
        refused = await alpha.report("web", lambda now: now.get("error"))
        assert "Deployment/web breaks run-as-non-root" in refused["error"]
        assert any("seccomp-profile (advisory)" in each for each in refused["advice"])
