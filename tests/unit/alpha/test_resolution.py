"""Resolution of a manifest against the state; each refusal names the problem and the cure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from unit.alpha.entities import CALLER, GREETER, GREETING, contract, digest, manifest, replica

from reside.alpha.loading.resolve import (
    ClusterState,
    approve_request,
    approved,
    check_runnable,
    choose,
    replica_manifest,
)
from reside.model.entities import ReplicaChoice
from reside.model.errors import LoadRefused
from reside.registry.documents import Description

if TYPE_CHECKING:
    from reside.model.entities import ApproveRequest, Requirement
    from reside.model.manifest import ReplicaManifest

ONE = ReplicaChoice(id=3, name="greeter", account="co_zOne")
TWO = ReplicaChoice(id=4, name="greeter-1", account="co_zTwo")


def requiring(**members: Any) -> ReplicaManifest:
    return manifest(requirements={"greeting": {"identity": GREETING, "permissions": [{"name": "greet"}], **members}})


def state(**members: Any) -> ClusterState:
    return ClusterState(
        **{"existing": None, "name": "caller", "contracts": {GREETING: contract()}, "providers": {GREETING: (ONE, TWO)}}
        | members
    )


def resolved(subject: ReplicaManifest, **members: Any) -> ApproveRequest:
    return approve_request(subject, digest(1), state(**members))


def test_a_requirement_takes_the_first_replica_and_offers_the_rest() -> None:
    requirement = resolved(requiring()).requirements["greeting"]
    assert (requirement.replicas, requirement.alternatives) == ((ONE,), (TWO,))
    assert [p.permission for p in requirement.permissions] == ["greet"]


def test_a_multiple_requirement_takes_all() -> None:
    requirement = resolved(requiring(multiple=True)).requirements["greeting"]
    assert (requirement.replicas, requirement.alternatives) == ((ONE, TWO), ())


def test_a_requirement_without_a_server_is_refused_unless_optional() -> None:
    with pytest.raises(LoadRefused, match=f"no replica implements {GREETING}"):
        resolved(requiring(), providers={})
    assert resolved(requiring(optional=True), providers={}).requirements["greeting"].replicas == ()


def test_an_unknown_permission_is_refused_with_the_known_ones() -> None:
    with pytest.raises(LoadRefused, match="no permission 'greet'; it has wave"):
        resolved(requiring(), contracts={GREETING: contract(permissions={"wave": {}})})


def updating(before: ApproveRequest, choices: dict[str, list[int]], **members: Any) -> Requirement:
    """Resolve an update of a replica that was approved with these choices; return its requirement `greeting`."""
    existing = replica("running", identity=before.identity, info=before.info)
    version = existing.versions[0].model_copy(update={"requirements": choose(before, choices)})
    existing = existing.model_copy(update={"versions": (version,)})
    required = requiring(multiple=before.requirements["greeting"].multiple, optional=True)
    return resolved(required, existing=existing, **members).requirements["greeting"]


def test_an_update_keeps_the_choice_of_the_approver() -> None:
    assert updating(resolved(requiring()), {"greeting": [4]}).replicas == (TWO,)
    several = updating(resolved(requiring(multiple=True)), {"greeting": [4]})
    assert (several.replicas, several.alternatives, several.chosen) == ((TWO,), (ONE,), True)
    none = updating(resolved(requiring(optional=True)), {"greeting": []})
    assert (none.replicas, none.alternatives) == ((), (ONE, TWO))


def test_an_update_keeps_the_replica_that_served_a_requirement() -> None:
    """Though another one would be the first now."""
    before = resolved(requiring(), providers={GREETING: (TWO,)})
    assert updating(before, {}).replicas == (TWO,)


def test_an_update_resolves_anew_what_no_chosen_replica_serves_any_more() -> None:
    found = updating(resolved(requiring()), {"greeting": [4]}, providers={GREETING: (ONE,)})
    assert (found.replicas, found.chosen) == ((ONE,), False)
    assert updating(resolved(requiring(multiple=True), providers={GREETING: (ONE,)}), {}).replicas == (ONE, TWO)


def test_permissions_are_pending_until_they_are_approved() -> None:
    requirements = resolved(requiring()).requirements
    assert [p.status for p in requirements["greeting"].permissions] == ["pending"]
    assert [p.status for p in approved(requirements)["greeting"].permissions] == ["approved"]


def test_an_existing_replica_keeps_its_name() -> None:
    existing = replica("running", name="mine")
    same = manifest(GREETER, info=existing.info.model_dump(by_alias=True))
    assert resolved(same, existing=existing, name=existing.name).name == "mine"


def test_changed_info_is_refused_naming_the_change() -> None:
    existing = replica("running")
    info = existing.info.model_dump(by_alias=True) | {"scalable": False}
    with pytest.raises(LoadRefused, match="scalable True → False"):
        resolved(manifest(GREETER, info=info), existing=existing)


def test_a_replica_of_another_identity_can_not_be_updated() -> None:
    with pytest.raises(LoadRefused, match=f"images of {GREETER}, not of {CALLER}"):
        resolved(manifest(), existing=replica("running"))


def test_the_identity_must_be_that_of_the_image() -> None:
    with pytest.raises(LoadRefused, match=f"identity is {CALLER}, but the image is {GREETER}"):
        replica_manifest(manifest(), GREETER)


def test_a_contract_image_can_not_be_loaded() -> None:
    with pytest.raises(LoadRefused, match="is a contract, not a replica"):
        replica_manifest(contract(), GREETING)


def test_the_same_contract_twice_is_refused() -> None:
    twice = manifest(implementations={"one": {"identity": GREETING}, "two": {"identity": GREETING}})
    with pytest.raises(LoadRefused, match="implemented twice, as 'one' and 'two'"):
        replica_manifest(twice, CALLER)


def test_placeholders_are_replaced_in_params_and_instance() -> None:
    requested = {"name": "greet", "instanceId": "of-{replica.name}", "params": {"deep": ["{replica.identity}", "{3}"]}}
    permission = resolved(requiring(permissions=[requested])).requirements["greeting"].permissions[0]
    assert permission.instance_id == "of-caller"
    assert permission.params == {"deep": [CALLER, "{3}"]}


def test_an_unknown_placeholder_is_refused() -> None:
    permission = {"name": "greet", "params": {"a": "{replica.password}"}}
    with pytest.raises(LoadRefused, match=r"\{replica.password\}.*unknown"):
        resolved(requiring(permissions=[permission]))


def test_the_instance_id_is_computed_from_params_by_instance_keys() -> None:
    keyed = {GREETING: contract(permissions={"greet": {"instanceKeys": ["room"]}})}
    permission = {"name": "greet", "params": {"room": "hall"}}
    request = resolved(requiring(permissions=[permission]), contracts=keyed)
    assert request.requirements["greeting"].permissions[0].instance_id == "hall"
    with pytest.raises(LoadRefused, match="set instanceId or the params room"):
        resolved(requiring(), contracts=keyed)


@pytest.mark.parametrize("instance", ["room", "room:hall"])
def test_an_instance_that_looks_like_another_permission_is_refused(instance: str) -> None:
    both = {GREETING: contract(permissions={"greet": {}, "greet:room": {"instanceKeys": ["room"]}})}
    with pytest.raises(LoadRefused, match="is ambiguous with permission 'greet:room': use another instance"):
        resolved(requiring(permissions=[{"name": "greet", "instanceId": instance}]), contracts=both)
    for permission in ({"name": "greet", "instanceId": "roomy"}, {"name": "greet:room", "instanceId": "hall"}):
        assert resolved(requiring(permissions=[permission]), contracts=both).requirements["greeting"].permissions


def test_params_must_fit_the_contracts_schema() -> None:
    schema = {"type": "object", "properties": {"limit": {"type": "integer"}}, "additionalProperties": False}
    strict = {GREETING: contract(permissions={"greet": {"params": schema}})}
    permission = {"name": "greet", "params": {"limit": "many"}}
    with pytest.raises(LoadRefused, match='limit: "many" is not of type "integer"'):
        resolved(requiring(permissions=[permission]), contracts=strict)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": 3},
        {"$ref": "http://127.0.0.1:1/remote.json"},
        {"$ref": "#/nowhere"},
        {"properties": {"limit": {"pattern": "("}}},
        {"properties": {"limit": {"pattern": "(?=m)many"}}},
        {"properties": {"limit": {"pattern": "a{99999999999999}"}}},
        {"$schema": []},
        {"$schema": "http://json-schema.org/draft-04/schema#", "$ref": 5},
        {"$id": "http://[x", "$ref": "a"},
        {"allOf": [{"$ref": "#/allOf/first"}]},
    ],
)
def test_a_schema_that_can_not_be_used_is_refused_and_nothing_is_fetched(schema: dict[str, Any]) -> None:
    permission = {"name": "greet", "params": {"limit": "many"}}
    strange = {GREETING: contract(permissions={"greet": {"params": schema}})}
    with pytest.raises(LoadRefused, match="can't be checked"):
        resolved(requiring(permissions=[permission]), contracts=strange)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"limit": {"pattern": "^(a+)+$"}}},
        {"patternProperties": {"^(l|i|m|t)+$": {"pattern": "^(a|a)+$"}}},
    ],
)
def test_a_pattern_with_exponential_backtracking_is_checked_in_linear_time(schema: dict[str, Any]) -> None:
    """With backtracking, this value would take 2^64 steps."""
    permission = {"name": "greet", "params": {"limit": "a" * 64 + "!"}}
    slow = {GREETING: contract(permissions={"greet": {"params": schema}})}
    with pytest.raises(LoadRefused, match=r"limit: .* does not match"):
        resolved(requiring(permissions=[permission]), contracts=slow)


@pytest.mark.parametrize("schema", [{"$ref": "#"}, {"properties": {"limit": {"multipleOf": 0.5}}}])
def test_a_recursive_schema_and_a_huge_number_are_accepted(schema: dict[str, Any]) -> None:
    permission = {"name": "greet", "params": {"limit": 10**400}}
    strange = {GREETING: contract(permissions={"greet": {"params": schema}})}
    assert resolved(requiring(permissions=[permission]), contracts=strange).requirements["greeting"].permissions


def test_a_choice_moves_the_rest_to_the_alternatives() -> None:
    chosen = choose(resolved(requiring()), {"greeting": [4]})["greeting"]
    assert (chosen.replicas, chosen.alternatives) == ((TWO,), (ONE,))


def test_no_choice_keeps_what_was_resolved() -> None:
    request = resolved(requiring())
    assert choose(request, {}) == request.requirements


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"other": [3]}, "requirement other does not exist"),
        ({"greeting": [9]}, "replica 9 does not implement its contract; choose from 3"),
        ({"greeting": []}, "is not optional"),
        ({"greeting": [3, 4]}, "accepts one replica"),
    ],
)
def test_an_invalid_choice_is_refused(choices: dict[str, list[int]], message: str) -> None:
    with pytest.raises(LoadRefused, match=message):
        choose(resolved(requiring()), choices)


def test_an_optional_requirement_may_be_left_empty_and_a_multiple_one_take_several() -> None:
    assert choose(resolved(requiring(optional=True)), {"greeting": []})["greeting"].replicas == ()
    many = choose(resolved(requiring(multiple=True)), {"greeting": [4, 3]})["greeting"]
    assert many.replicas == (TWO, ONE)


@pytest.mark.parametrize(
    "user",
    ["0", "000", pytest.param("9" * 5000, id="long"), "\N{ARABIC-INDIC DIGIT ONE}", "-1", "+1", " 1", "1\n", "app"],
)
def test_an_image_whose_user_is_no_number_from_one_on_is_refused(user: str) -> None:
    """It may be of any length and of any characters; Kubernetes knows ASCII digits only."""
    with pytest.raises(LoadRefused, match="runs as") as refused:
        check_runnable("x", Description({}, f"{user}:1", layered=True))
    assert len(str(refused.value)) < 300
    check_runnable("x", Description({}, "065532:1", layered=True))
