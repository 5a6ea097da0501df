"""`reside secret` at a running replica *secret*, each command as a user types it."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import yaml
from structlog.testing import capture_logs
from support.eventually import eventually

from reside.cli import main, secrets
from reside.cli.grantees import Names
from reside.cli.secrets import Keeper
from reside.common.tls import trusted_authorities
from reside.jazz import Node
from reside.model.endpoints import rpc_path
from reside.model.secret_contract import MANAGE_SECRETS, READ_SECRET, SECRET_CONTRACT
from reside.replica.client import call_method

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from integration.secrets.conftest import World

    from reside.jazz import Credentials
    from reside.testing import User

pytestmark = pytest.mark.anyio
VALUE = "hunter2 and more"


class Command:
    """Runs commands as an account, in a thread with an event loop of its own, as the program does."""

    def __init__(self, world: World, credentials: Credentials, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
        self.world = world
        self._credentials = credentials
        self._captured = capfdbinary

    async def __call__(self, *arguments: str) -> tuple[int, str, str]:
        """Run `reside` with arguments; return its exit code and what it wrote."""
        code = await asyncio.to_thread(main.run, [*arguments])
        written = self._captured.readouterr()
        return code, written.out.decode(), written.err.decode()

    @asynccontextmanager
    async def open_keeper(self, _context: str | None) -> AsyncIterator[Keeper]:
        """Stand for the connection to a cluster of the configuration."""
        async with (
            Node(self.world.server.url, self._credentials) as node,
            httpx2.AsyncClient(verify=trusted_authorities(), trust_env=False) as http,
        ):
            await node.login()
            yield Keeper(node, self.world.keeper.account, self._names(), partial(self._call, http))

    def _names(self) -> Names:
        return Names([], {"me": self._credentials.account_id})

    async def _call(self, http: httpx2.AsyncClient, method: str, body: dict[str, Any]) -> Any:
        endpoint = str(self.world.context.node.account.profile["endpoints"]["internal"])
        path = rpc_path("secret", SECRET_CONTRACT, method)
        receiver = self.world.keeper.account
        return await call_method(http, self._credentials, endpoint=endpoint, receiver=receiver, path=path, body=body)


@pytest.fixture
async def me(world: World, name: str) -> User:
    """Return an account that manages secrets and may read one."""
    user = await world.user(reads=name)
    await world.cluster.grant(user, world.keeper, MANAGE_SECRETS)
    return user


@pytest.fixture
def command(
    world: World, me: User, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Iterator[Command]:
    """Yield the command of this account; no log may have the value."""
    made = Command(world, me._caller.credentials, capfdbinary)
    monkeypatch.setattr(secrets, "open_keeper", made.open_keeper)
    with capture_logs() as logs:  # of the replica, which runs in this process
        yield made
    assert VALUE not in str(logs)


async def test_a_value_goes_in_from_a_file_or_standard_input_and_comes_out_of_get_alone(
    command: Command, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "value"
    file.write_text(VALUE)
    assert await command("secret", "set", name, "--from-file", str(file)) == (
        0,
        f"secret {name} is set (version 1)\n",
        "",
    )
    assert await command("secret", "get", name) == (0, VALUE, "")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xc3\xa4\x1b[31m\n")))
    code, out, err = await command("secret", "set", name, "-")
    assert (code, out) == (0, f"secret {name} is set (version 2)\n")
    assert "ends with a line break" in err
    assert await command("secret", "get", name) == (0, "ä\x1b[31m\n", "")
    assert await command("secret", "delete", name, "--auto-approve") == (0, f"secret {name} is deleted\n", "")
    code, out, err = await command("secret", "get", name)
    assert (code, out) == (1, "")
    assert err == f"error: secret {name} has no value: set it with `reside secret set {name}`\n"


async def test_a_list_has_names_ages_and_accounts_and_no_value(
    command: Command, world: World, name: str, tmp_path: Path
) -> None:
    file = tmp_path / "value"
    file.write_text(VALUE)
    await command("secret", "set", name, "--from-file", str(file))
    other = await world.user(reads=name)
    code, out, err = await command("secret", "list")
    (line,) = [line for line in out.splitlines() if line.startswith(f"{name} ")]
    assert (code, err, VALUE in out) == (0, "", False)
    assert out.split()[:5] == ["NAME", "VERSION", "AGE", "READERS", "WRITERS"]
    assert line.split()[1] == "1"
    assert "me, co_z" in line
    _, out, _ = await command("secret", "list", "-o", "json")
    (found,) = [found for found in json.loads(out) if found["name"] == name]
    assert set(found["readers"]) == {"me", other.account}
    assert (found["by"], found["version"], found["at"][:2], "value" in found) == ("me", 1, "20", False)
    _, out, _ = await command("secret", "list", "-o", "yaml")
    assert found in yaml.safe_load(out)
    _, out, _ = await command("secret", "list", "-o", "name")
    assert name in out.splitlines()
    _, out, _ = await command("secret", "list", "--wide")
    assert other.account in out


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a program that adds a word the editor, and return it."""
    program = tmp_path / "editor"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$(cat "$1") edited" > "$1"\n')
    program.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(program))
    return str(program)


async def test_an_edit_changes_what_was_read_and_nothing_that_was_set_meanwhile(
    command: Command, me: User, name: str, editor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await command.world.set(me, name, VALUE)
    assert await command("secret", "edit", name) == (0, f"secret {name} is set (version 2)\n", "")
    assert await command("secret", "get", name) == (0, f"{VALUE} edited", "")
    monkeypatch.setenv("VISUAL", "true")
    assert await command("secret", "edit", name) == (0, f"secret {name} is not changed\n", "")
    real, loop = secrets.edited, asyncio.get_running_loop()

    def slow(of: str, value: str) -> str:
        asyncio.run_coroutine_threadsafe(command.world.set(me, of, "theirs"), loop).result(60)
        return real(of, value)

    monkeypatch.setenv("VISUAL", editor)
    monkeypatch.setattr(secrets, "edited", slow)
    code, out, err = await command("secret", "edit", name)
    assert (code, out) == (1, "")
    assert err.startswith(f"error: secret {name} was changed meanwhile (it has version 3 now)")
    assert await command("secret", "get", name) == (0, "theirs", "")


async def test_mistakes_end_with_one_line_that_shows_no_value(
    command: Command, world: World, me: User, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(VALUE.encode())))
    await world.set(me, f"{name}-unread", VALUE)
    for arguments, text in (
        (("set", name, VALUE), "a value is never an argument"),
        (("set", name), "no terminal to ask for the value"),
        (("set", "A B", "-"), "can't be the name of a secret"),
        (("get", "a_b"), "can't be the name of a secret"),
        (("get", f"{name}-absent"), "does not exist: set it with"),
        (("edit", f"{name}-absent"), "does not exist"),
        (("get", f"{name}-unread"), f"lacks {READ_SECRET} for it: grant it with"),
        (("delete", f"{name}-absent", "--auto-approve"), "has no value"),
    ):
        code, out, err = await command("secret", *arguments)
        assert (code, out, err.count("\n")) == (1, "", 1), err
        assert text in err
        assert VALUE not in err
    await world.cluster.revoke(me, world.keeper, MANAGE_SECRETS)
    code, _, err = await command("secret", "set", name, "-")
    assert (code, "set-secret needs the permission secret:write" in err) == (1, True)
    assert VALUE not in err


async def test_nothing_that_was_handed_over_is_left(command: Command, world: World, me: User, name: str) -> None:
    """The map that carries a value to the replica is deleted; only the secret's own has it then."""
    await world.set(me, name, "carried-value")
    held = {item.value for item, text in (await world.decrypted(me)).items() if "carried-value" in text}
    await eventually(
        "one map with the value",
        partial(world.decrypted, me),
        lambda seen: len({item.value for item, text in seen.items() if "carried-value" in text}) == 1,
    )
    assert len(held) <= 2
