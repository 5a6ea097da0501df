"""An update of an object takes one request to the API server, and is as careful as with more."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from integration.engine.running import Bench, actions, new_bench, secret, stack
from support.api_proxy import api_proxy
from support.sentinel import config_map, new_namespace, workload

from reside.sentinel.engine import ApplyConflict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio
THEIRS = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"y":"theirs"}}'


@asynccontextmanager
async def counted(cluster: ClusterInfo, folder: Path) -> AsyncIterator[tuple[Bench, list[str]]]:
    """Yield an engine, and the list of its requests to the resources of its namespace."""
    namespace, requests = new_namespace(cluster), list[str]()
    async with api_proxy(cluster, namespace, folder) as proxy:
        proxy.seen = lambda request, side: requests.append(str(request)) if side == "before" else None
        async with new_bench(cluster, folder, namespace=namespace, kubeconfig=proxy.kubeconfig) as bench:
            yield bench, requests


def live(bench: Bench, key: str) -> dict[str, Any]:
    found = bench.live(key)
    assert found is not None
    return found


async def test_an_update_takes_one_request(cluster: ClusterInfo, tmp_path: Path) -> None:
    """Also the second one, and those of a Secret and a Deployment. The state has the object, and no other inputs."""

    def objects(value: str) -> tuple[dict[str, Any], ...]:
        return config_map("a", x=value), secret("s", key=value), workload("Deployment", "web", replicas=int(value))

    async with counted(cluster, tmp_path) as (bench, requests):
        await bench.engine.apply(stack(*objects("0")))
        for value in ("1", "2"):
            requests.clear()
            done = await bench.engine.apply(stack(*objects(value)))
            assert set(actions(done).values()) == {"update"}
            assert sorted(requests) == ["PATCH configmaps/a", "PATCH deployments/web", "PATCH secrets/s"]
            assert live(bench, "ConfigMap/a")["data"] == {"x": value}
            assert done.versions["ConfigMap/a"] == live(bench, "ConfigMap/a")["metadata"]["resourceVersion"]
        found = {each["urn"].split("::")[-1]: each for each in bench.export("demo")["deployment"]["resources"]}
        assert "uid" not in found["a"]["inputs"]["metadata"]
        assert "uid" not in found["a"]["outputs"]["__inputs"]["metadata"]
        assert found["a"]["outputs"]["metadata"]["uid"] == live(bench, "ConfigMap/a")["metadata"]["uid"]
        requests.clear()
        assert set(actions(await bench.engine.apply(stack(*objects("2")))).values()) == {"same"}
        assert requests == []


async def test_an_object_that_was_created_again_is_updated(cluster: ClusterInfo, tmp_path: Path) -> None:
    """As a repair creates it, which the state does not know."""
    async with counted(cluster, tmp_path) as (bench, requests):
        await bench.engine.apply(stack(config_map("a", x="1")))
        bench.kubectl("delete", "configmap", "a")
        bench.kubectl("create", "configmap", "a", "--from-literal=z=1")
        requests.clear()
        assert actions(await bench.engine.apply(stack(config_map("a", x="2")))) == {"ConfigMap/a": "update"}
        assert live(bench, "ConfigMap/a")["data"]["x"] == "2"
        assert requests[:2] == ["PATCH configmaps/a", "GET configmaps/a"]
        requests.clear()
        await bench.engine.apply(stack(config_map("a", x="3")))
        assert requests == ["PATCH configmaps/a"]


async def test_fields_of_kubectl_are_taken_over_and_those_of_others_are_a_conflict(
    cluster: ClusterInfo, tmp_path: Path
) -> None:
    async with counted(cluster, tmp_path) as (bench, _requests):
        await bench.engine.apply(stack(config_map("a", x="1")))
        bench.kubectl("patch", "configmap", "a", "--type=merge", "-p", '{"data":{"x":"by hand"}}')
        await bench.engine.apply(stack(config_map("a", x="2")))
        assert live(bench, "ConfigMap/a")["data"] == {"x": "2"}
        bench.kubectl("apply", "--server-side", "--field-manager", "other", "-f", "-", stdin=THEIRS)
        with pytest.raises(ApplyConflict) as caught:
            await bench.engine.apply(stack(config_map("a", x="3", y="ours")))
        assert caught.value.manager == "other"
        assert live(bench, "ConfigMap/a")["data"] == {"x": "2", "y": "theirs"}


async def test_what_kubectl_has_just_changed_of_a_yielded_field_is_a_conflict(
    cluster: ClusterInfo, tmp_path: Path
) -> None:
    """The Sentinel has not seen the change yet: a moment later it leaves the field out."""
    web = workload("Deployment", "web", replicas=0)
    web["metadata"]["annotations"] = {"reside.io/yield": "spec.replicas"}
    async with counted(cluster, tmp_path) as (bench, _requests):
        await bench.engine.apply(stack(web))
        patch = '{"spec":{"replicas":2,"paused":true}}'
        bench.kubectl("patch", "deployment", "web", "--type=merge", "-p", patch)
        with pytest.raises(ApplyConflict) as caught:
            await bench.engine.apply(stack(web | {"spec": web["spec"] | {"minReadySeconds": 1, "replicas": 1}}))
        assert caught.value.manager.startswith("kubectl")
        assert live(bench, "Deployment/web")["spec"]["replicas"] == 2
        bench.kubectl("delete", "deployment", "web")
        done = await bench.engine.apply(stack(web | {"spec": web["spec"] | {"minReadySeconds": 1}}))
        assert actions(done) == {"Deployment/web": "create"}


async def test_a_field_that_kubectl_changed_is_removed_when_it_is_not_declared_any_more(
    cluster: ClusterInfo, tmp_path: Path
) -> None:
    async with counted(cluster, tmp_path) as (bench, _requests):
        await bench.engine.apply(stack(config_map("a", x="1", y="1")))
        bench.kubectl("patch", "configmap", "a", "--type=merge", "-p", '{"data":{"x":"by hand"}}')
        await bench.engine.apply(stack(config_map("a", y="2")))
        assert live(bench, "ConfigMap/a")["data"] == {"y": "2"}
