"""Which load requests matter for a replica, and which permissions it waits for."""

from __future__ import annotations

from typing import Any

import pytest
from support.eventually import eventually

from reside.cli import missing_grants as module
from reside.cli.missing_grants import missing_grants, missing_grants_shown
from reside.cli.replica_requests import last_request, line, relevant
from reside.jazz import ValueNotFound
from reside.model.alpha_contract import DIRECT_GRANTS
from reside.model.entities import ApproveRequest, DirectGrant, LoadRequest
from reside.model.errors import InvalidInput, ResideError

IDENTITY = "registry.example.org/team/greeter"
ROW: dict[str, Any] = {
    "id": 3,
    "name": "hello",
    "account": "co_zHello",
    "identity": IDENTITY,
    "versions": [{"request": 4}, {"request": None}, {"request": 9}],
    "requires": [
        {
            "key": "it",
            "contract": "c",
            "replicas": [7],
            "permissions": [
                {"permission": "read", "instanceId": None},
                {"permission": "room", "instanceId": "blue"},
                {"permission": "write", "instanceId": None},
            ],
        }
    ],
}


def request(number: int, status: Any = "invalid", image: str = f"{IDENTITY}:v2", **members: Any) -> LoadRequest:
    return LoadRequest(id=number, status=status, image=image, owner="co_z", **members)


def content(name: str) -> ApproveRequest:
    info = {"name": "greeter", "class": "long-running", "exclusive": False, "scalable": True}
    return ApproveRequest.model_validate({"info": info, "name": name, "identity": IDENTITY, "digest": "sha256:0"})


@pytest.mark.parametrize(
    ("found", "is_its"),
    [
        (request(10, approve_request=content("hello")), True),
        (request(10, approve_request=content("other")), False),
        (request(10, existing_replica=3), True),
        (request(10, existing_replica=4), False),
        (request(10, requested_name="hello"), True),
        (request(10, requested_name="other"), False),
        (request(10), True),
        (request(10, image=IDENTITY), True),
        (request(10, image=f"{IDENTITY}-more:v1"), False),
        (request(10, image="registry.example.org/hello:v1"), True),
    ],
)
def test_a_request_belongs_to_the_replica_that_it_would_change(found: LoadRequest, is_its: bool) -> None:
    assert (relevant([found], "hello", ROW) == [found]) is is_its


def test_open_requests_and_the_last_that_failed_are_shown_the_newest_first() -> None:
    failed = [request(number) for number in (11, 12, 13, 14)]
    waiting, done = request(10, "requires-approval"), request(15, "approved", version=4)
    found = relevant([waiting, *failed, done], "hello", ROW)
    assert [each.id for each in found] == [14, 13, 12, 10]
    assert (last_request(ROW), last_request(None)) == (9, 0)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (request(1, "requires-approval"), f"load request 1 waits for approval: {IDENTITY}:v2"),
        (request(1, "validating"), f"load request 1 is validated: {IDENTITY}:v2"),
        (request(1, "approved"), f"load request 1 is approved and is carried out: {IDENTITY}:v2"),
        (request(1, "invalid", error_message="no such image"), "load request 1 is invalid: no such image"),
        (request(1, "rejected", rejection_reason="no"), "load request 1 is rejected: no"),
        (request(1, "rejected"), "load request 1 is rejected: no reason was given"),
    ],
)
def test_a_sentence_says_what_a_request_waits_for(found: LoadRequest, said: str) -> None:
    assert line(found) == said


class _Session:
    """A session whose Alpha has granted `read`, waits for the replica with `room`, and knows of no `write`."""

    def __init__(self) -> None:
        self.node = self
        self.group = type("Group", (), {"my_role": "reader"})
        self.data = {DIRECT_GRANTS: "index"}

    async def call(self, _method: str, body: dict[str, Any]) -> dict[str, Any]:
        """Explain a permission."""
        expected = {"granted": True} if body["permission"] in ("read", "room") else None
        return {"inForce": body["permission"] == "read", "expected": expected}

    async def load_map(self, co_id: str) -> Any:
        """Return the index of direct grants, or those of an account."""
        if co_id == "index":
            index = _Map({"co_zHello": "grants", "co_zOther": "others"})
            index.group = self.group
            return index
        asked = {"status": "pending", "replica": 8, "contract": "c", "permission": "wave"}
        granted = {"status": "approved", "replica": 8, "contract": "c", "permission": "look"}
        return {key: DirectGrant.model_validate(each).document() for key, each in (("a", asked), ("b", granted))}


class _Map(dict[str, str]):
    group: Any = None


@pytest.mark.anyio
async def test_permissions_that_are_not_in_force_and_those_that_nobody_decided_are_named() -> None:
    session: Any = _Session()
    assert await missing_grants(session, ROW, {7: "greeter"}) == [
        "room:blue of greeter is not granted yet: greeter has not carried out the grant, does it run?",
        "write of greeter is not granted: it was taken away, or has not been written yet",
        "wave of 8 is not granted: hello has asked for it, and nobody has decided",
    ]


class _Refusing(_Session):
    """A session whose Alpha refuses to explain; `asked` counts how often it was asked."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.asked, self._error = 0, error

    async def call(self, _method: str, _body: dict[str, Any]) -> dict[str, Any]:
        """Refuse."""
        self.asked += 1
        raise self._error


@pytest.mark.anyio
@pytest.mark.parametrize("error", [InvalidInput("there is no replica 7"), ResideError("a bug"), ValueNotFound("co_z1")])
async def test_a_load_goes_on_if_the_permissions_that_it_waits_for_can_not_be_read(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replica that it requires may be deleted meanwhile."""
    monkeypatch.setattr(module, "LOOK_S", 0)
    session: Any = _Refusing(error)
    async with missing_grants_shown(session, {}, lambda: {**ROW, "status": "starting"}):
        await eventually("two looks", lambda: session.asked > 3)
