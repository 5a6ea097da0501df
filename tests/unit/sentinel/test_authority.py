"""Which edit of an entry counts, and which stacks may be changed."""

from types import SimpleNamespace
from typing import Any

import pytest

from reside.jazz import Edit, SessionId
from reside.model.errors import Conflict, InvalidInput, NotAllowed
from reside.model.permissions import ControlBlockPermission, Grant, PermissionRef
from reside.model.stacks import DesiredStack
from reside.sentinel.contract.access import confirmed_uids, granted_names, roles
from reside.sentinel.contract.desired_stacks import Rights, check_rights, effective_edit, read_stack
from reside.sentinel.contract.manifest import CONTRACT

NOW = 1_000_000
ALPHA, OTHER, STRANGER = "co_zalpha", "co_zother", "co_zstranger"


def rights(**granted: set[str]) -> Rights:
    """Rights from account name (lower case) → permissions; no stack holds an object."""
    table = {ALPHA: granted.get("alpha", set()), OTHER: granted.get("other", set())}
    return Rights(lambda account, name: name in table.get(account, set()), lambda _: None, NOW)


BOTH = rights(alpha={"config-map:manage:all"}, other={"config-map:manage:all"})


def edit(by: str, value: Any = "co_zmap", at: int = NOW, *, deleted: bool = False) -> Edit:
    return Edit(by, at, SessionId(f"{by}_session_zx"), value, deleted)


def config_map(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


def members(*objects: Any, name: str = "demo", owner: str = ALPHA) -> dict[str, Any]:
    return {"name": name, "owner": owner, "objects": list(objects)}


def test_the_first_authorized_author_owns_the_entry() -> None:
    history = [edit(STRANGER, "first"), edit(ALPHA, "second"), edit(OTHER, "third"), edit(ALPHA, "fourth")]
    found = effective_edit([*history, edit(OTHER, None, deleted=True)], None, BOTH)
    assert found is not None
    assert found.value == "fourth"


def test_a_known_owner_stays_the_owner() -> None:
    found = effective_edit([edit(ALPHA, "a"), edit(OTHER, "b")], OTHER, BOTH)
    assert found is not None
    assert found.value == "b"
    assert effective_edit([edit(ALPHA, "a")], OTHER, BOTH) is None


def test_an_edit_from_the_future_does_not_count() -> None:
    found = effective_edit([edit(ALPHA, "now"), edit(ALPHA, "later", NOW + 60_001)], None, BOTH)
    assert found is not None
    assert found.value == "now"


def test_an_entry_without_an_authorized_author_does_not_count() -> None:
    assert effective_edit([edit(STRANGER)], None, BOTH) is None


def test_a_stack_is_read() -> None:
    stack = read_stack("demo", edit(ALPHA), members(config_map("a")), edit(ALPHA))
    assert stack == DesiredStack("demo", ALPHA, (config_map("a"),))


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (members(config_map("a"), name="else"), "both must be the same DNS label"),
        (members("nonsense"), "list of Kubernetes objects"),
        ({"name": "demo", "objects": []}, "member owner"),
        ({"owner": ALPHA, "objects": []}, "member name"),
        ({"name": "demo", "owner": ALPHA}, "list of Kubernetes objects"),
        (members({"kind": "Pod", "metadata": {"name": "x"}}), "can't be in a stack"),
        (members({**config_map("a"), "apiVersion": "v2"}), "must have apiVersion v1"),
        (members(config_map("a"), config_map("a")), "twice"),
        (members(config_map("../secrets/alpha")), "invalid name for a Kubernetes object"),
        (members({**config_map("a"), "metadata": ["a"]}), "no metadata"),
        (members({**config_map("a"), "metadata": {"name": "a", "labels": ["x"]}}), "labels of ConfigMap/a"),
        (
            members({**config_map("a"), "metadata": {"name": "a", "annotations": {"x": 1}}}),
            "annotations of ConfigMap/a",
        ),
        (members({**config_map("a"), "kind": "Secret", "data": "x"}), "data of Secret/a"),
        (members(config_map("reside-teardown")), "ConfigMap/reside-teardown can't be declared"),
    ],
)
def test_an_invalid_stack_is_refused_with_the_reason(found: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_stack("demo", edit(ALPHA), found, edit(ALPHA))


@pytest.mark.parametrize("name", ["../up", "Upper", "", "a" * 64, "-a", "1a"])
def test_a_stack_name_is_a_label(name: str) -> None:
    with pytest.raises(InvalidInput, match="DNS label"):
        read_stack(None, edit(ALPHA), members(name=name), edit(ALPHA))


def test_entry_owner_and_objects_must_be_of_one_account() -> None:
    with pytest.raises(NotAllowed, match=OTHER):
        read_stack("demo", edit(ALPHA), members(config_map("a")), edit(OTHER))
    with pytest.raises(NotAllowed, match=OTHER):
        read_stack("demo", edit(ALPHA), members(config_map("a"), owner=OTHER), edit(ALPHA))


def test_each_kind_needs_its_permission_and_all_missing_ones_are_named() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "a"}}
    stack = DesiredStack("demo", ALPHA, (config_map("a"), service, role))
    with pytest.raises(NotAllowed, match="role:manage:all, service:manage:all"):
        check_rights(stack, BOTH)
    check_rights(DesiredStack("demo", ALPHA, (config_map("a"),)), BOTH)


def test_an_object_of_another_stack_is_refused() -> None:
    held = Rights(BOTH.granted, lambda _: "platform", NOW)
    with pytest.raises(Conflict, match="platform"):
        check_rights(DesiredStack("demo", ALPHA, (config_map("a"),)), held)
    check_rights(DesiredStack("platform", ALPHA, (config_map("a"),)), held)


def test_only_what_is_in_force_counts_as_granted() -> None:
    """An expected permission, a revoked one, one of another contract and one of another account grant nothing."""

    def entry(
        account: str, name: str, current: Grant | None, contract: str = CONTRACT.identity, *, expected: bool = True
    ) -> Any:
        return ControlBlockPermission(PermissionRef(account, contract, name), Grant(granted=expected), current)

    found = granted_names(
        [
            entry(ALPHA, "job:manage:all", None),
            entry(ALPHA, "role:manage:all", Grant(granted=False)),
            entry(ALPHA, "secret:read:all", Grant(granted=True)),
            entry(ALPHA, "config-map:read:all", Grant(granted=True), expected=False),
            entry(ALPHA, "service:manage:all", Grant(granted=True), "another/contract"),
            entry(OTHER, "ingress:manage:all", Grant(granted=True)),
        ],
        ALPHA,
    )
    assert found == {"secret:read:all"}


def test_manage_permissions_allow_writing_and_reading_and_read_permissions_reading() -> None:
    assert roles(frozenset({"job:manage:all"})) == ("writer", "reader", None, {"Job"})
    assert roles(frozenset({"job:read:all"})) == (None, "reader", None, {"Job"})
    assert roles(frozenset({"prune:confirm"})) == (None, "reader", "writer", set())
    assert roles(frozenset({"stack:reassign"})) == (None, "reader", "writer", set())
    assert roles(frozenset()) == (None, None, None, set())


def test_a_confirmation_counts_while_its_author_may_confirm_and_is_not_of_the_future() -> None:
    def confirm(by: str, *uids: Any, at: int = 0, deleted: bool = False) -> Any:
        return SimpleNamespace(by=by, value=list(uids), at=at, deleted=deleted)

    history = [confirm(ALPHA, "a", 1), confirm(OTHER, "b"), confirm(ALPHA, "c", at=60_002), confirm(ALPHA, "d")]
    history += [confirm(ALPHA, "e", deleted=True), SimpleNamespace(by=ALPHA, value="f", at=0, deleted=False)]
    held = Rights(lambda account, name: (account, name) == (ALPHA, "prune:confirm"), lambda _: None, 1)
    assert confirmed_uids(history, held) == {"a", "d"}
    assert confirmed_uids(history, Rights(lambda *_: False, lambda _: None, 1)) == frozenset()


def test_the_contract_has_a_pair_of_permissions_for_each_kind_those_of_operators_and_no_methods() -> None:
    assert len(CONTRACT.permissions) == 28
    assert {
        "stateful-set:manage:all",
        "persistent-volume-claim:read:all",
        "prune:confirm",
        "stack:reassign",
        "state:manage",
        "logs:read",
    } <= CONTRACT.permissions.keys()
    assert not CONTRACT.methods
