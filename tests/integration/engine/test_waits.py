"""No operation waits for ever: it ends at its deadline, when it is interrupted, and before deletions have ended."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from integration.engine.running import Bench, actions, stack
from support.eventually import eventually
from support.sentinel import config_map, kubectl

from reside.sentinel.engine import DeletionPending, EngineTimeout, EngineUnavailable
from reside.sentinel.engine.stack_files import StackFiles

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.anyio
NEVER = "example.com/never"


def held(name: str) -> dict[str, Any]:
    """Return a ConfigMap that stays when it is deleted."""
    found = config_map(name, x="1")
    found["metadata"]["finalizers"] = [NEVER]
    return found


@contextmanager
def silent_webhook(bench: Bench) -> Iterator[socket.socket]:
    """Let the API server ask a webhook about the namespace's ConfigMaps that accepts connections and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        hook = {
            "name": "silent.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "timeoutSeconds": 30,
            "failurePolicy": "Fail",
            "clientConfig": {"url": f"https://127.0.0.1:{listening.getsockname()[1]}/"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": bench.namespace}},
            # a controller creates this one at any time
            "matchConditions": [{"name": "own", "expression": "request.name != 'kube-root-ca.crt'"}],
        }
        configuration = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": f"silent-{bench.namespace}"},
            "webhooks": [hook],
        }
        kubectl(bench.info, "apply", "-f", "-", stdin=json.dumps(configuration))
        try:
            yield listening
        finally:
            kubectl(bench.info, "delete", "validatingwebhookconfiguration", f"silent-{bench.namespace}")


async def asked(listening: socket.socket) -> None:
    """Wait until the API server asks the webhook."""
    listening.setblocking(False)
    await asyncio.get_running_loop().sock_accept(listening)


async def test_a_deletion_that_does_not_end_is_named_and_awaited_by_no_operation(bench: Bench) -> None:
    await bench.engine.apply(stack(held("gone"), config_map("kept", x="1")))
    with pytest.raises(DeletionPending) as pending:
        await bench.engine.apply(stack(config_map("kept", x="2"), config_map("new", x="1")))
    assert pending.value.objects == {"ConfigMap/gone"}
    kept = bench.live("ConfigMap/kept")
    assert kept is not None
    assert kept["data"] == {"x": "2"}
    assert bench.live("ConfigMap/new")
    assert not StackFiles(bench.settings, "demo").interrupted
    bench.kubectl("patch", "configmap", "gone", "--type=merge", "--patch", '{"metadata": {"finalizers": null}}')
    done = await bench.engine.apply(stack(config_map("kept", x="2"), config_map("new", x="1")))
    assert actions(done) == {"ConfigMap/kept": "same", "ConfigMap/new": "same", "ConfigMap/gone": "delete"}
    await bench.engine.apply(stack(held("gone")))
    with pytest.raises(DeletionPending):
        await bench.engine.destroy("demo")
    bench.kubectl("patch", "configmap", "gone", "--type=merge", "--patch", '{"metadata": {"finalizers": null}}')
    await bench.engine.destroy("demo")
    assert not StackFiles(bench.settings, "demo").exists


async def test_an_operation_ends_at_its_deadline_and_the_next_one_completes_it(bench: Bench) -> None:
    await bench.engine.apply(stack(config_map("a", x="1")))
    bench.engine._settings = replace(bench.settings, deadline=2.0)
    with silent_webhook(bench), pytest.raises(EngineTimeout, match="did not end within 2 s"):
        await bench.engine.apply(stack(config_map("a", x="2")))
    bench.engine._settings = bench.settings
    await eventually("the end of the webhook", lambda: _accepts(bench))
    await bench.engine.apply(stack(config_map("a", x="2")))
    assert set(actions(await bench.engine.apply(stack(config_map("a", x="2")))).values()) == {"same"}


async def test_an_interrupted_operation_ends_at_once_and_others_go_on(bench: Bench) -> None:
    await bench.engine.apply(stack(config_map("a", x="1")))
    with silent_webhook(bench) as listening:
        waiting = asyncio.create_task(bench.engine.apply(stack(config_map("a", x="2"))))
        await asked(listening)
        await bench.engine.interrupt("demo")
        with pytest.raises(EngineUnavailable):
            await waiting
        await bench.engine.interrupt("demo")
    await eventually("the end of the webhook", lambda: _accepts(bench))
    await bench.engine.apply(stack(config_map("a", x="3")))
    live = bench.live("ConfigMap/a")
    assert live is not None
    assert live["data"] == {"x": "3"}


def _accepts(bench: Bench) -> bool:
    """Return whether the API server has stopped to ask the webhook."""
    try:
        bench.kubectl("create", "configmap", "probe", "--dry-run=server", "--request-timeout=1s")
    except AssertionError:
        return False
    return True
