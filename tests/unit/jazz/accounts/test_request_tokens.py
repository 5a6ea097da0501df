"""Request tokens: which requests a receiver accepts, and the errors for the others."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reside.jazz import (
    AccountId,
    Credentials,
    RequestVerifier,
    TokenRefused,
    UsedTokens,
    UsedTokensOnDisk,
    read_request_account,
    sign_request,
)
from reside.jazz.tokens.form import BOUND, parse, signed_text
from reside.jazz.wire.crypto import Agent
from reside.jazz.wire.encoding import b58encode

pytestmark = pytest.mark.anyio


def _fixed(number: int) -> Credentials:
    """Return the same credentials in every test process."""
    key = b58encode(bytes([number]) * 32)
    return Credentials.from_secret(f"sealerSecret_z{key}/signerSecret_z{key}")


CALLER, OTHER = _fixed(1), _fixed(2)
ME = _fixed(3).account_id
NOW = 1_795_266_000_000


class _Receiver:
    """A verifier with a clock to set."""

    def __init__(
        self, *, started: int = NOW - 60_000, since: int | None = None, used: UsedTokens | None = None
    ) -> None:
        self.now = started
        self.verifier = RequestVerifier(ME, clock=lambda: self.now, used=used, since_ms=since)
        self.now = NOW

    async def verify(self, header: str | None, **changed: Any) -> AccountId:
        request = {"method": "POST", "path": "/rpc/greet?x=1", "body": b'{"name":"x"}'} | changed
        return await self.verifier.verify(header, **request)


def _agent(credentials: Credentials) -> str:
    return Agent.from_secret(credentials.agent_secret).agent_id


def _sign(credentials: Credentials = CALLER, **changed: Any) -> str:
    request = {"receiver": ME, "method": "POST", "path": "/rpc/greet?x=1", "body": b'{"name":"x"}', "now_ms": NOW}
    return sign_request(credentials, **(request | changed))


async def test_a_signed_request_names_its_account() -> None:
    header = _sign(method="post")
    assert await _Receiver().verify(header) == CALLER.account_id
    assert read_request_account(header) == CALLER.account_id
    assert CALLER.agent_secret not in header


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"receiver": OTHER.account_id}, "receiver"),
        ({"method": "PUT"}, "method"),
        ({"path": "/rpc/greet?x=2"}, "path"),
        ({"body": b"{}"}, "body"),
        ({"now_ms": NOW - 60_001}, "expired"),
        ({"now_ms": NOW + 60_001}, "future"),
    ],
)
async def test_a_token_for_another_request_is_refused_and_says_why(changed: dict[str, Any], reason: str) -> None:
    header = _sign(**changed)
    with pytest.raises(TokenRefused) as refused:
        await _Receiver().verify(header)
    assert refused.value.reason == reason
    assert all(field not in str(refused.value) for field in header.split("~")[:1])


async def test_the_clock_may_differ_by_a_minute_in_both_directions() -> None:
    for shift in (-60_000, 60_000):
        assert await _Receiver().verify(_sign(now_ms=NOW + shift)) == CALLER.account_id


async def test_a_token_is_accepted_once() -> None:
    receiver = _Receiver()
    header = _sign()
    await receiver.verify(header)
    with pytest.raises(TokenRefused, match="used before") as refused:
        await receiver.verify(header)
    assert refused.value.reason == "reused"
    await receiver.verify(_sign())


async def test_a_reuse_is_refused_as_long_as_the_token_lives_and_then_forgotten() -> None:
    """A token from a fast clock is valid for two minutes here, and is remembered for that time."""
    receiver = _Receiver()
    header = _sign(now_ms=NOW + 60_000)
    await receiver.verify(header)
    receiver.now = NOW + 119_000
    with pytest.raises(TokenRefused) as refused:
        await receiver.verify(header)
    assert refused.value.reason == "reused"
    receiver.now = NOW + 200_000
    with pytest.raises(TokenRefused) as refused:
        await receiver.verify(header)
    assert refused.value.reason == "expired"
    await receiver.verify(_sign(now_ms=receiver.now))
    assert len(receiver.verifier._used) == 1


async def test_a_receiver_without_a_file_refuses_tokens_created_before_it_started() -> None:
    header = _sign()
    await _Receiver().verify(header)
    restarted = _Receiver(started=NOW + 1)
    with pytest.raises(TokenRefused, match="make a new one and try again") as refused:
        await restarted.verify(header)
    assert refused.value.reason == "restarted"
    assert await restarted.verify(_sign(now_ms=NOW + 1)) == CALLER.account_id


async def test_a_token_created_while_the_receiver_started_is_accepted() -> None:
    """Its predecessor had ended by then. So a call that is signed just before the receiver is ready does not fail."""
    ready = _Receiver(started=NOW + 2_000, since=NOW)
    assert await ready.verify(_sign(now_ms=NOW)) == CALLER.account_id


async def test_a_reuse_is_refused_across_a_restart_and_by_a_second_process_with_a_file(tmp_path: Path) -> None:
    """Also for a caller whose clock is ahead, and without refusing what was made before the restart."""
    header = _sign(now_ms=NOW + 50_000)
    first, second = UsedTokensOnDisk(tmp_path / "used.sqlite"), UsedTokensOnDisk(tmp_path / "used.sqlite")
    await _Receiver(used=first).verify(header)
    first.close()
    again = UsedTokensOnDisk(tmp_path / "used.sqlite")
    for used in (second, again):
        receiver = _Receiver(started=NOW + 1, used=used)
        with pytest.raises(TokenRefused) as refused:
            await receiver.verify(header)
        assert refused.value.reason == "reused"
        await receiver.verify(_sign())
    receiver.now = NOW + 200_000
    await receiver.verify(_sign(now_ms=receiver.now))
    assert again._database.execute("SELECT count(*) FROM used").fetchone() == (1,)
    again.close()
    second.close()


async def test_a_refused_request_does_not_use_up_a_nonce() -> None:
    receiver = _Receiver()
    header = _sign(nonce="mine")
    forged = header.replace(CALLER.account_id, OTHER.account_id)
    with pytest.raises(TokenRefused):
        await receiver.verify(forged)
    assert await receiver.verify(header) == CALLER.account_id
    assert await receiver.verify(_sign(OTHER, nonce="mine")) == OTHER.account_id


async def test_a_changed_field_breaks_the_signature() -> None:
    fields = _sign().removeprefix("Jazz-Bound ").split("~")
    other = _sign(OTHER).removeprefix("Jazz-Bound ").split("~")
    for place, value in ((0, other[0]), (2, str(NOW + 1)), (4, "another")):
        changed = [*fields[:place], value, *fields[place + 1 :]]
        with pytest.raises(TokenRefused) as refused:
            await _Receiver().verify("Jazz-Bound " + "~".join(changed))
        assert refused.value.reason == "signature"


@pytest.mark.parametrize("agent", [_agent(OTHER), "", "sealer_z1/signer_z1", "é"])
async def test_an_agent_of_another_account_is_refused(agent: str) -> None:
    """Whoever signs with a key pair of its own can't name an account of others."""
    header = _sign().replace(_agent(CALLER), agent)
    with pytest.raises(TokenRefused) as refused:
        await _Receiver().verify(header)
    assert refused.value.reason == "account"


def test_the_text_of_a_token_is_json_whatever_its_fields_contain() -> None:
    """The texts of ciphers are no exception here, so the text of one token is never the text of another one."""
    token = replace(parse(_sign(), BOUND), nonce='encrypted_U","x')
    assert json.loads(signed_text(token)) == ["Jazz-Bound", *token.fields()]


async def test_a_forged_account_with_a_valid_signature_is_refused() -> None:
    agent = Agent.from_secret(OTHER.agent_secret)
    token = replace(parse(_sign(OTHER), BOUND), account_id=CALLER.account_id)
    header = BOUND + "~".join([agent.sign(signed_text(token)), *token.fields()])
    with pytest.raises(TokenRefused) as refused:
        await _Receiver().verify(header)
    assert refused.value.reason == "account"


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (None, "missing"),
        ("", "missing"),
        ("Bearer x", "malformed"),
        ("Jazz-Bound ", "malformed"),
        ("Jazz-Bound a~b~c~d~e~f~g~h~i", "malformed"),
        (f"Jazz-Bound s~{ME}~1~a~~e~f~g~h", "malformed"),
        (f"Jazz-Bound s~{ME}~1~a~{'n' * 65}~e~f~g~h", "malformed"),
        (f"Jazz-Bound s~{ME}~²~a~n~e~f~g~h", "malformed"),
        ("Jazz-Bound " + "~" * 5000, "malformed"),
        (f"Jazz s~{ME}~{NOW}", "malformed"),
        (f"Jazz-Bound s~{ME}~{NOW}~a~n~{ME}~POST~x~y", "path"),
    ],
)
async def test_a_malformed_header_is_refused(header: str | None, reason: str) -> None:
    with pytest.raises(TokenRefused) as refused:
        await _Receiver().verify(header)
    assert refused.value.reason == reason


async def test_a_verifier_remembers_at_most_a_thousand_agents_and_none_that_has_not_signed() -> None:
    receiver = _Receiver()
    callers = [Credentials.generate() for _ in range(1_005)]
    for caller in [*callers, callers[0], callers[-1]]:
        header = _sign(caller)
        forged = f"{_sign(OTHER).split('~')[0]}~{header.split('~', 1)[1]}"
        before = dict(receiver.verifier._known)
        with pytest.raises(TokenRefused, match="its signature is not one"):
            await receiver.verify(forged)
        assert receiver.verifier._known == before
        assert await receiver.verify(header) == caller.account_id
        with pytest.raises(TokenRefused, match="its agent is not the agent of its account"):
            await receiver.verify(header.replace(caller.account_id, OTHER.account_id))
    assert len(receiver.verifier._known) == 1_000
