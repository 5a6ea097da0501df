"""The checker of clusters accepts a possible state, and names each impossible or unfinished one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from support.cluster_invariants import faults, unfinished
from support.cluster_picture import Block, History, Picture, SeenReplica, SeenRequest
from unit.alpha.entities import CLUSTER, GREETER, GREETING, OWNER, digest, replica

from reside.alpha.stacks.render import render
from reside.model.constants import ALPHA_CONTRACT, ALPHA_ID
from reside.model.entities import ApproveRequest, Decision, DirectGrant, LoadRequest, Management
from reside.model.permissions import ControlBlockPermission, Grant, PermissionRef

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.model.entities import Replica

GRANTED = Grant(granted=True)
REF = PermissionRef("co_zUser", ALPHA_CONTRACT, "replica:read:all")


def request(number: int, **members: Any) -> SeenRequest:
    """Return an approved request whose version exists."""
    info = replica("running").info
    approved = ApproveRequest(info=info, name="greeter", identity=GREETER, digest=digest(number))
    value = LoadRequest(
        **{
            "id": number,
            "status": "approved",
            "image": f"{GREETER}:v{number}",
            "owner": OWNER,
            "approve_request": approved,
            "preview": {"stack": "greeter"},
            "revision": "a" * 64,
            "digest": digest(number),
            "target_replica": 3,
            "version": number,
            **members,
        }
    )
    return SeenRequest(f"co_zRequest{number}", value, by_id=f"co_zRequest{number}")


def seen(value: Replica, **members: Any) -> SeenReplica:
    """Return a replica with everything that points to it."""
    stack = render(value, CLUSTER, owner=OWNER, serving={GREETING})
    return replace(
        SeenReplica(
            "co_zReplica",
            value,
            by_id="co_zReplica",
            by_name="co_zReplica",
            block_by_id="co_zBlock",
            by_identity=("co_zReplica",),
            block=Block("co_zBlock", (), {}),
            desired=stack,
            rendered=stack,
            has_secret=False,
        ),
        **members,
    )


def greeter(*statuses: Any, **members: Any) -> Replica:
    """Return a replica whose versions have the requests 1, 2 and so on."""
    made = replica(*statuses, **members)
    versions = tuple(version.model_copy(update={"request": version.id}) for version in made.versions)
    return made.model_copy(update={"versions": versions})


def picture(**members: Any) -> Picture:
    """Return a finished cluster with one replica of two versions, and one direct grant."""
    grant = DirectGrant(status="approved", replica=ALPHA_ID, contract=ALPHA_CONTRACT, permission=REF.name)
    whole = Picture(
        requests=(request(1), request(2)),
        replicas=(seen(greeter("stopped", "running")),),
        accounts={"co_zGreeter": 3},
        blocks=("co_zBlock",),
        own_block=Block("co_zOwn", (ControlBlockPermission(REF, GRANTED, GRANTED),), {}),
        providers={GREETING: ("co_zReplica",)},
        contracts={"co_zContract": (1, GREETING)},
        direct={REF.account: (grant,)},
        declared=("greeter",),
    )
    return replace(whole, **members)


def test_a_finished_cluster_has_no_faults_and_nothing_unfinished() -> None:
    assert faults(picture(), History()) == []
    assert unfinished(picture()) == []


def _other(number: int, **members: Any) -> SeenRequest:
    return replace(request(number, **members), map=f"co_zOther{number}", by_id=f"co_zOther{number}")


OPEN = {"target_replica": None, "version": None}
IMPOSSIBLE: dict[str, tuple[Callable[[], Picture], str]] = {
    "an id of two requests": (
        lambda: picture(requests=(request(1), request(2), _other(2))),
        "request id 2 is there 2 times",
    ),
    "an id of two replicas": (
        lambda: picture(replicas=(*picture().replicas, seen(greeter("stopped", "running", name="other"), map="co_zB"))),
        "replica id 3 is there 2 times",
    ),
    "a name of two replicas": (
        lambda: picture(
            replicas=(*picture().replicas, seen(replica("running", id=4, account="co_z2"), map="co_z2", by_id="co_z2"))
        ),
        "name greeter is there 2 times",
    ),
    "a name that two open requests hold": (
        lambda: picture(requests=(*picture().requests, *(_other(n, status="approved", **OPEN) for n in (3, 4)))),
        "requests 3 and 4 hold the name greeter",
    ),
    "a digest that is not the request's": (
        lambda: picture(requests=(request(1), request(2, digest=digest(9)))),
        "version 2 of greeter has the digest",
    ),
    "a version without a request": (lambda: picture(requests=(request(1),)), "version 2 of greeter has no request"),
    "a version of a request that was rejected": (
        lambda: picture(requests=(request(1), request(2, status="rejected", rejection_reason="no"))),
        "version 2 of greeter is of request 2, which is rejected",
    ),
    "two versions of one request": (
        lambda: picture(
            replicas=(
                seen(
                    greeter("stopped", "running").model_copy(
                        update={
                            "versions": tuple(
                                v.model_copy(update={"request": 1}) for v in greeter("stopped", "running").versions
                            )
                        }
                    )
                ),
            )
        ),
        "version of request 1 is there 2 times",
    ),
    "a request whose version does not exist": (
        lambda: picture(requests=(request(1), request(2), request(3))),
        "request 3 names version 3, which greeter does not have",
    ),
    "a current version that does not exist": (
        lambda: picture(replicas=(seen(greeter("stopped", "running").model_copy(update={"current_version": 7})),)),
        "replica 3 has no version 7",
    ),
    "a rejection without a reason": (
        lambda: picture(requests=(*picture().requests, request(3, status="rejected", **OPEN))),
        "request 3 is rejected, and does not say why",
    ),
    "two running versions of a replica that is not scalable": (
        lambda: picture(replicas=(seen(greeter("running", "running", scalable=False)),)),
        "replica 3 runs twice",
    ),
    "a look-up of another request": (
        lambda: picture(requests=(request(1), replace(request(2), by_id="co_zElse"))),
        "the look-up of request 2 points to co_zElse",
    ),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_an_impossible_state_is_refused(case: str) -> None:
    make, fault = IMPOSSIBLE[case]
    if "current version" in case:  # it can't be rendered
        broken = greeter("stopped", "running").model_copy(update={"current_version": 7})
        shown = picture(replicas=(replace(picture().replicas[0], value=broken),))
    else:
        shown = make()
    assert any(fault in found for found in faults(shown, History())), faults(shown, History())


def test_what_exists_does_not_become_something_else() -> None:
    history = History()
    assert faults(picture(), history) == []
    assert faults(picture(requests=(request(1), _other(2))), history) == ["request 2 was another one before"]
    renamed = seen(greeter("stopped", "running", account="co_zOther"))
    assert faults(picture(replicas=(renamed,)), history) == ["replica 3 was another one before"]


def test_a_digest_is_that_of_the_image_that_was_pushed() -> None:
    history = History(digests={f"{GREETER}:v2": digest(5)})
    assert faults(picture(), history) == [f"request 2 has the digest {digest(2)}, its image {digest(5)}"]


UNFINISHED: dict[str, tuple[Callable[[], Picture], str]] = {
    "a request that is validated": (
        lambda: picture(requests=(*picture().requests, request(3, status="validating", **OPEN))),
        "request 3 is validating",
    ),
    "an approved request without a version": (
        lambda: picture(requests=(request(1), request(2, **OPEN))),
        "request 2 is approved",
    ),
    "an index with a finished request": (lambda: picture(open={"2": "co_zRequest2"}), "the index lists"),
    "a turn of a finished request": (
        lambda: picture(requests=(request(1), replace(request(2), has_turn=True))),
        "request 2 is finished, and has a turn",
    ),
    "a name that a finished request holds": (
        lambda: picture(requests=(request(1), replace(request(2), holds_name=True)), replicas=(), accounts={}),
        "request 2 is finished, and holds the name greeter",
    ),
    "a candidate of a finished request": (
        lambda: picture(previewed=("load-request.2.abc",)),
        "request 2 is finished, and is previewed",
    ),
    "a stack that is not the rendered one": (
        lambda: picture(
            replicas=(
                replace(
                    picture().replicas[0],
                    desired=render(greeter("stopped", "starting"), CLUSTER, owner="co_zElse", serving={GREETING}),
                ),
            )
        ),
        "greeter is declared as",
    ),
    "a stack of no replica": (lambda: picture(declared=("greeter", "old")), "stack old of no replica is declared"),
    "a version that does not run": (
        lambda: picture(replicas=(seen(greeter("stopped", "starting")),)),
        "version 2 of greeter is starting",
    ),
    "a version that runs though the replica is disabled": (
        lambda: picture(replicas=(seen(greeter("stopped", "running", management=Management(enabled=False))),)),
        "version 2 of greeter is running",
    ),
    "a deletion": (
        lambda: picture(replicas=(seen(greeter("stopped", "running", deletion=Decision(by=OWNER, at=1))),)),
        "greeter is being deleted",
    ),
    "a name that points elsewhere": (
        lambda: picture(replicas=(replace(picture().replicas[0], by_name=None),)),
        "the look-up of greeter by name points to None",
    ),
    "a provider that is not listed": (lambda: picture(providers={GREETING: ()}), f"the look-up of {GREETING} lists"),
    "an expected permission that is not due": (lambda: picture(direct={}), "block 1 expects"),
    "a permission that is due and not expected": (
        lambda: picture(own_block=Block("co_zOwn", (), {})),
        "block 1 expects {}",
    ),
    "a permission that Alpha has not carried out": (
        lambda: picture(own_block=Block("co_zOwn", (ControlBlockPermission(REF, GRANTED, None),), {})),
        "Alpha has not carried out",
    ),
    "an agent secret in Jazz": (
        lambda: picture(replicas=(replace(picture().replicas[0], has_secret=True),)),
        "the agent secret of greeter is in Jazz",
    ),
    "a trace of a deleted replica": (lambda: picture(gone=("the name x",)), "the name x"),
}


@pytest.mark.parametrize("case", UNFINISHED)
def test_unfinished_work_is_named(case: str) -> None:
    make, what = UNFINISHED[case]
    assert any(what in found for found in unfinished(make())), unfinished(make())
