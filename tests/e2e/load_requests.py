"""Load requests from the operator's side: the prompt of the command, and calls of Alpha by an account."""

from __future__ import annotations

import re
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
from support.operator_session import operator_session

from reside.model import lookup
from reside.model.entities import LoadRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.platform import Platform

QUESTION = "Approve?"
_CREATED = re.compile(r"request (\d+)")


def number_in(said: str) -> int:
    """Return the id of the load request that the command printed."""
    found = _CREATED.search(said)
    assert found is not None, f"no request in: {said}"
    return int(found[1])


def call(platform: Platform, method: str, **body: Any) -> Any:
    """Call a method of Alpha with the operator's account; raise the error that Alpha returns."""

    async def run() -> Any:
        async with operator_session(platform.environment) as session:
            return await session.call(method, body)

    return anyio.run(run)


def approve(platform: Platform, number: int) -> Any:
    """Approve a request at its previewed revision, or at the revision `none` if it has no preview."""
    revision = load_request(platform, number).revision or "none"
    return call(platform, "approve-load-request", id=number, revision=revision)


def load_request(platform: Platform, number: int) -> LoadRequest:
    """Return a load request as the operator's account reads it in Jazz."""

    async def run() -> LoadRequest:
        async with operator_session(platform.environment) as session:
            named = await session.node.find_unique_map(session.data.group.id, lookup.load_request_by_id(number))
            assert named is not None, f"there is no load request {number}"
            return LoadRequest.model_validate((await session.node.load_map(named["target"])).as_dict())

    return anyio.run(run)


@dataclass
class Asking:
    """`reside replica load` while it waits at its prompt."""

    process: subprocess.Popen[str]
    said: str

    @property
    def number(self) -> int:
        """Id of the load request."""
        return number_in(self.said)

    def answer(self, text: str) -> subprocess.CompletedProcess[str]:
        """Enter a line, or end the input; return the result of the command."""
        rest, _ = self.process.communicate(f"{text}\n" if text else None, timeout=300)
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, self.said + rest)


@contextmanager
def asking(platform: Platform, image: str, name: str) -> Iterator[Asking]:
    """Load an image under a name, up to the command's prompt."""
    process = subprocess.Popen(
        [*platform.command, "replica", "load", image, "--name", name],
        env=platform.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        try:
            yield Asking(process, _until_question(process))
        finally:
            process.kill()


def _until_question(process: subprocess.Popen[str]) -> str:
    """Return the output up to the prompt, which does not end its line."""
    assert process.stdout is not None
    said = ""
    while not said.endswith(QUESTION):
        character = process.stdout.read(1)
        assert character, f"the command did not ask: {said}"
        said += character
    return said
