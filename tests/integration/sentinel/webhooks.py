"""An admission webhook that never answers, so that an apply is under way for as long as a test wants."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from support.sentinel import kubectl

from reside.local import ClusterInfo


@asynccontextmanager
async def silent_webhook(cluster: ClusterInfo, namespace: str) -> AsyncIterator[asyncio.Event]:
    """Ask a server that accepts connections and never answers about every ConfigMap `slow` of a namespace.

    The event is set as soon as the API server has asked.
    """
    asked, over = asyncio.Event(), asyncio.Event()

    async def accept(_reader: Any, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await over.wait()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    hook = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": namespace},
        "webhooks": [
            {
                "name": "silent.example.com",
                "clientConfig": {"url": f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"},
                "rules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
                ],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "matchConditions": [{"name": "slow", "expression": "request.name == 'slow'"}],
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "timeoutSeconds": 30,
                "failurePolicy": "Fail",
            }
        ],
    }
    run = partial(asyncio.to_thread, kubectl, cluster)
    try:
        await run("apply", "-f", "-", stdin=json.dumps(hook))
        yield asked
    finally:
        over.set()
        server.close()
        await run("delete", "validatingwebhookconfiguration", namespace)
