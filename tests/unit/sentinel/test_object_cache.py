"""The cache of live objects: what listeners hear of a list or an event, and which objects belong to a stack."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from typing import Any

import pytest

from reside.model.constants import FIELD_MANAGER, STACK_LABEL
from reside.model.kinds import BY_KIND
from reside.sentinel.guard.cache import ObjectCache

pytestmark = pytest.mark.anyio
KIND = BY_KIND["ConfigMap"]


def config_map(name: str, version: str | None = "1", *, stack: str = "demo", uid: str = "u") -> dict[str, Any]:
    meta = {"name": name, "uid": uid, "labels": {STACK_LABEL: stack}}
    return {"kind": "ConfigMap", "metadata": meta | ({} if version is None else {"resourceVersion": version})}


@pytest.fixture
def cache() -> ObjectCache:
    cache = ObjectCache()
    cache.replace(KIND, [config_map("a"), config_map("b")])
    return cache


@pytest.fixture
def heard(cache: ObjectCache) -> list[str]:
    found: list[str] = []
    cache.listen(lambda key, _before, live: found.append(f"{key} {'gone' if live is None else 'seen'}"))
    return found


def test_a_list_tells_only_what_changed(cache: ObjectCache, heard: list[str]) -> None:
    cache.replace(KIND, [config_map("a"), config_map("b", "2"), config_map("c")])
    assert heard == ["ConfigMap/b seen", "ConfigMap/c seen"]
    heard.clear()
    cache.replace(KIND, [config_map("b", "2"), config_map("c")])
    assert heard == ["ConfigMap/a gone"]


def test_an_object_that_was_created_anew_is_a_change_even_in_the_same_version(
    cache: ObjectCache, heard: list[str]
) -> None:
    cache.replace(KIND, [config_map("a", uid="other"), config_map("b")])
    assert heard == ["ConfigMap/a seen"]


def test_an_event_that_repeats_a_version_is_no_change(cache: ObjectCache, heard: list[str]) -> None:
    cache.note("MODIFIED", config_map("a"))
    assert heard == []
    cache.note("MODIFIED", config_map("a", None))
    cache.note("MODIFIED", config_map("a", None))
    cache.note("DELETED", config_map("a", "9"))
    assert heard == ["ConfigMap/a seen", "ConfigMap/a seen", "ConfigMap/a gone"]


def test_a_list_of_one_kind_leaves_the_others(cache: ObjectCache) -> None:
    cache.replace(BY_KIND["Secret"], [])
    assert cache.objects.keys() == {"ConfigMap/a", "ConfigMap/b"}


def test_only_the_fields_of_other_managers_are_kept(cache: ObjectCache) -> None:
    """What is left out is the largest part of most objects. What stays tells who has changed or added something."""
    ours, status, other = (
        {"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": {"f:data": {}}},
        {"manager": "kube-controller-manager", "subresource": "status", "fieldsV1": {"f:status": {}}},
        {"manager": "kubectl-edit", "fieldsV1": {"f:data": {}}},
    )
    for name, found in (("a", [ours, status, other]), ("b", [ours, status])):
        live = config_map(name, "2")
        live["metadata"]["managedFields"] = found
        cache.note("MODIFIED", live)
    assert cache.objects["ConfigMap/a"]["metadata"]["managedFields"] == [other]
    assert "managedFields" not in cache.objects["ConfigMap/b"]["metadata"]


def test_the_objects_of_a_stack_follow_their_labels(cache: ObjectCache) -> None:
    assert cache.of_stack("demo") == {"ConfigMap/a", "ConfigMap/b"}
    cache.note("MODIFIED", config_map("a", "2", stack="other"))
    cache.note("DELETED", config_map("b"))
    assert (cache.of_stack("demo"), cache.of_stack("other")) == (frozenset(), {"ConfigMap/a"})


def test_an_object_is_kept_as_it_was_shown(cache: ObjectCache) -> None:
    """It is kept as text. What orjson can't write is kept as it is."""
    live = config_map("a", "3") | {"data": {"text": "ü\u2028", "empty": None, "list": [1, 2.5, True, {}]}}
    odd = config_map("b", "3") | {"data": {"text": "\ud800", "number": 2**70}}
    cache.replace(KIND, [live, odd])
    assert cache.get("ConfigMap/a") == live
    assert cache.get("ConfigMap/b") == odd


def test_a_caller_does_not_change_what_is_kept(cache: ObjectCache) -> None:
    found = cache.get("ConfigMap/a")
    assert found is not None
    found["data"] = {"x": "1"}
    assert cache.get("ConfigMap/a") == config_map("a")


def test_kept_objects_are_no_work_for_the_garbage_collector(cache: ObjectCache) -> None:
    """A thousand stacks have five thousand objects of a few dozen dicts each; a full collection visits every dict."""
    assert not any(gc.is_tracked(text) for text in cache._objects._packed.values())


def test_it_is_known_which_objects_others_own_fields_of() -> None:
    cache = ObjectCache()

    def note(event: str, *managers: str) -> bool:
        fields = [{"manager": manager, "operation": "Update"} for manager in managers]
        meta = {"name": "a", "resourceVersion": str(len(managers)), "managedFields": fields}
        cache.note(event, {"kind": "ConfigMap", "metadata": meta})
        return cache.is_shared("ConfigMap/a")

    assert not cache.is_shared("ConfigMap/a")
    assert not note("ADDED", FIELD_MANAGER)
    assert note("MODIFIED", FIELD_MANAGER, "other")
    assert not note("MODIFIED", FIELD_MANAGER)
    assert note("MODIFIED", FIELD_MANAGER, "other")
    assert not note("DELETED")


async def test_a_long_list_is_noted_in_several_turns_of_the_event_loop(cache: ObjectCache, heard: list[str]) -> None:
    """Its end tells what is gone, and that the kind is listed."""
    many = [config_map(f"new-{number}") for number in range(100)]
    seen: list[int] = []
    cache.listen_lists(lambda _kind: seen.append(-1))
    loading = asyncio.create_task(cache.load(KIND, [config_map("a"), *many]))
    while not loading.done():
        await asyncio.sleep(0)
        seen.append(len(heard))
    assert len(set(seen)) > 3
    assert seen.count(-1) == 1
    assert "ConfigMap/b seen" not in heard
    assert heard.index("ConfigMap/b gone") > heard.index("ConfigMap/new-60 seen")
    assert sorted(cache.objects) == sorted(["ConfigMap/a", *(f"ConfigMap/new-{number}" for number in range(100))])


async def test_lists_of_several_kinds_and_what_they_remove_take_turns(cache: ObjectCache) -> None:
    """After a restart, the lists of all kinds arrive together."""
    kinds = [BY_KIND[kind] for kind in ("Secret", "Service", "ServiceAccount")]
    lists = {kind: [config_map(str(number)) | {"kind": kind.kind} for number in range(100)] for kind in kinds}
    per_round = Counter[int]()
    rounds = 0
    cache.listen(lambda *_: per_round.update([rounds]))

    async def count_rounds() -> None:
        nonlocal rounds
        while True:
            await asyncio.sleep(0)
            rounds += 1

    counting = asyncio.create_task(count_rounds())
    await asyncio.gather(*(cache.load(kind, objects) for kind, objects in lists.items()))
    assert (per_round.total(), max(per_round.values())) == (300, 32)
    await asyncio.gather(*(cache.load(kind, []) for kind in kinds))
    assert (per_round.total(), max(per_round.values())) == (600, 32)
    counting.cancel()


async def test_a_kind_counts_as_listed_at_the_end_of_its_first_list() -> None:
    cache, listed = ObjectCache([KIND]), []
    cache.listen(lambda key, _before, _live: listed.append(cache.is_listed(key)))
    await cache.load(KIND, [config_map(f"new-{number}") for number in range(100)])
    assert not listed[0]
    assert cache.ready.is_set()
