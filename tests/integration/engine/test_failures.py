"""The engine's errors for failures of the API server, conflicts and wrong calls; they contain no secrets."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from integration.engine.running import PASSPHRASE, Bench, actions, new_bench, secret, stack
from support.sentinel import config_map, workload

from reside.sentinel.engine import (
    ApplyBlocked,
    ApplyConflict,
    ApplyRejected,
    EngineBroken,
    EngineError,
    EngineUnavailable,
    PulumiEngine,
    StackSpec,
    check_adoption,
)
from reside.sentinel.engine.adoption import ABSENT

if TYPE_CHECKING:
    from pathlib import Path

    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio
VALUE = "a-value-that-nobody-may-see"


async def test_a_conflict_names_object_and_manager_and_changes_nothing(bench: Bench) -> None:
    await bench.engine.apply(stack(config_map("a", x="1")))
    theirs = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"theirs"}}'
    command = ["apply", "--server-side", "--force-conflicts", "--field-manager", "other", "-f", "-"]
    bench.kubectl(*command, stdin=theirs)
    with pytest.raises(ApplyConflict) as caught:
        await bench.engine.apply(stack(config_map("a", x="2")))
    assert (caught.value.object, caught.value.manager) == ("ConfigMap/a", "other")
    assert ".data.x" in str(caught.value)
    live = bench.live("ConfigMap/a")
    assert live is not None
    assert live["data"] == {"x": "theirs"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"replicas": "many"}, "expected numeric"),
        ({"selector": {"matchLabels": {"other": "label"}}}, "`selector` does not match template `labels`"),
    ],
)
async def test_a_rejected_object_is_named_with_the_api_servers_message(
    bench: Bench, change: dict[str, Any], words: str
) -> None:
    with pytest.raises(ApplyRejected) as caught:
        await bench.engine.apply(stack(config_map("a"), workload("Deployment", "web", **change)))
    assert caught.value.object == "Deployment/web"
    assert words in str(caught.value)
    assert "urn:pulumi" not in str(caught.value)
    assert len(str(caught.value)) < 450


async def test_after_a_rejection_the_corrected_stack_applies(bench: Bench) -> None:
    with pytest.raises(ApplyRejected):
        await bench.engine.apply(stack(config_map("a"), workload("Deployment", "web", replicas="many")))
    done = await bench.engine.apply(stack(config_map("a"), workload("Deployment", "web", replicas=0)))
    assert actions(done) == {"ConfigMap/a": "same", "Deployment/web": "create"}


async def test_a_preview_finds_what_the_api_server_would_reject(bench: Bench) -> None:
    with pytest.raises(ApplyRejected) as caught:
        await bench.engine.preview(stack(workload("Deployment", "web", selector={"matchLabels": {"other": "label"}})))
    assert caught.value.object == "Deployment/web"


async def test_an_unreachable_cluster_is_transient(bench: Bench, tmp_path: Path) -> None:
    await bench.engine.apply(stack(config_map("a", x="1")))
    dead = tmp_path / "dead.kubeconfig"
    dead.write_text(bench.info.kubeconfig.read_text().replace(bench.info.api_url, "https://127.0.0.1:9"))
    engine = PulumiEngine(replace(bench.settings, kubeconfig=dead))
    try:
        for operation in (engine.apply(stack(config_map("a", x="2"))), engine.destroy("demo")):
            with pytest.raises(EngineUnavailable):
                await operation
    finally:
        await engine.stop()
    assert actions(await bench.engine.apply(stack(config_map("a", x="2")))) == {"ConfigMap/a": "update"}


async def test_a_wrong_passphrase_is_an_error_that_the_operator_must_fix(bench: Bench) -> None:
    await bench.engine.apply(stack(secret("s", key=VALUE)))
    engine = PulumiEngine(replace(bench.settings, passphrase="another-passphrase"))
    try:
        with pytest.raises(EngineBroken, match="passphrase"):
            await engine.apply(stack(secret("s", key=VALUE)))
    finally:
        await engine.stop()


async def test_missing_binaries_are_named(bench: Bench) -> None:
    for change in ({"pulumi": "no-such-pulumi"}, {"provider": "no-such-provider"}):
        with pytest.raises(EngineBroken, match=r"no-such-.* is missing"):
            await PulumiEngine(replace(bench.settings, **change)).apply(stack(config_map("a")))


async def test_a_manually_deleted_object_is_created_again_by_a_change_and_ignored_by_a_deletion(bench: Bench) -> None:
    await bench.engine.apply(stack(config_map("a", x="1"), config_map("b")))
    bench.kubectl("delete", "configmap", "a", "b")
    done = await bench.engine.apply(stack(config_map("a", x="2")))
    assert actions(done)["ConfigMap/a"] == "create"
    live = bench.live("ConfigMap/a")
    assert live is not None
    assert live["data"] == {"x": "2"}
    assert actions(await bench.engine.apply(stack(config_map("a", x="2")))) == {"ConfigMap/a": "same"}


async def test_lost_state_adopts_objects_with_our_label_in_place(
    bench: Bench, cluster: ClusterInfo, tmp_path: Path
) -> None:
    await bench.engine.apply(stack(config_map("a", x="1"), secret("s", key=VALUE)))
    before = bench.live("ConfigMap/a")
    async with new_bench(
        cluster, tmp_path / "second", namespace=bench.namespace, engine=bench.settings.engine
    ) as second:
        done = await second.engine.apply(stack(config_map("a", x="2"), secret("s", key=VALUE)))
        assert set(actions(done).values()) == {"create"}
        after = bench.live("ConfigMap/a")
        assert before is not None
        assert after is not None
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["data"] == {"x": "2"}
        await second.engine.destroy("demo")
    assert bench.live("ConfigMap/a") is None


async def test_a_foreign_object_is_refused_with_its_manager_and_ours_is_not(bench: Bench) -> None:
    await bench.engine.apply(stack(config_map("ours")))
    bench.kubectl("create", "configmap", "theirs", "--from-literal=a=b", "--field-manager", "somebody")

    async def get_live(manifest: dict[str, Any]) -> dict[str, Any] | None:
        name = manifest["metadata"]["name"]
        flags = ["--ignore-not-found", "--show-managed-fields", "-o", "json"]
        text = bench.kubectl("get", manifest["kind"], name, *flags)
        return json.loads(text) if text.strip() else None

    wanted = [config_map("ours"), config_map("theirs"), config_map("new")]
    found = await check_adoption(wanted, get_live, lambda name: name == "demo")
    assert [refusal.object for refusal in found.refused] == ["ConfigMap/theirs"]
    assert "delete it, or give it the label" in str(found.refused[0])
    assert found.refused[0].manager == "somebody"


async def test_a_create_fails_if_another_program_is_faster(cluster: ClusterInfo, tmp_path: Path) -> None:
    """Between the look at an object and its create. The object of the other program stays as it is."""

    def wanted(name: str, **identity: str) -> StackSpec:
        return StackSpec("demo", (config_map(name, x="1"),), expected={f"ConfigMap/{name}": identity})

    async with new_bench(cluster, tmp_path) as bench:
        bench.kubectl("create", "configmap", "theirs", "--from-literal=a=b")
        theirs = bench.live("ConfigMap/theirs")
        assert theirs is not None
        for identity in (ABSENT, {"uid": "4b1ed8f5-0000-0000-0000-000000000000"}):
            with pytest.raises(ApplyBlocked):
                await bench.engine.apply(wanted("theirs", **identity))
            assert bench.live("ConfigMap/theirs") == theirs
        with pytest.raises(ApplyBlocked):
            await bench.engine.apply(wanted("gone", uid=theirs["metadata"]["uid"]))
        assert bench.live("ConfigMap/gone") is None
        assert actions(await bench.engine.apply(wanted("new", **ABSENT))) == {"ConfigMap/new": "create"}
        assert actions(await bench.engine.apply(stack(config_map("new", x="1")))) == {"ConfigMap/new": "same"}
        found = bench.live("ConfigMap/new")
        assert found is not None
        async with new_bench(cluster, tmp_path / "second", namespace=bench.namespace) as second:
            await second.engine.apply(wanted("new", uid=found["metadata"]["uid"]))
            assert actions(await second.engine.apply(stack(config_map("new", x="1")))) == {"ConfigMap/new": "same"}


async def test_secret_values_are_nowhere_on_disk_nor_in_errors_and_results(bench: Bench) -> None:
    encoded = base64.b64encode(VALUE.encode()).decode()
    good = stack(secret("s", key=VALUE), config_map("a"))
    results: list[Any] = [await bench.engine.preview(good), await bench.engine.apply(good), good]
    results.append(await bench.engine.preview(stack(secret("s", key=VALUE + "-2"))))
    assert {c.object: c.paths for c in results[-1].changed}["Secret/s"] == ("data.key",)
    bad = secret("s", key=VALUE)
    bad["metadata"]["name"] = "Not a name"
    for broken in (bad, secret("t", **{VALUE: VALUE}) | {"type": "kubernetes.io/tls"}):
        with pytest.raises(EngineError) as caught:
            await bench.engine.apply(stack(broken, name="broken"))
        results += [str(caught.value), vars(caught.value)]
    results.append(bench.export("demo"))
    for text in map(repr, results):
        assert VALUE not in text
        assert encoded not in text
    for path in bench.settings.folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            for hidden in (VALUE, encoded, PASSPHRASE):
                assert hidden.encode() not in content, path


async def test_settings_do_not_show_the_passphrase(bench: Bench) -> None:
    assert PASSPHRASE not in repr(bench.settings)
