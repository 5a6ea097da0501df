"""Random programs by Python and JavaScript nodes of the same accounts: same content, same verdict on every transaction.

A failure prints the shortest program that fails, what happened in it, and how to run it again. Other programs are tried
with `RESIDE_JAZZ_SEED=<number>`; `make soak` takes a new number each time and prints it.
"""

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from hypothesis import HealthCheck, assume, given, note, seed, settings
from interop.differential.programs import FORGERIES, TIES, Program, Run, programs
from interop.differential.simulation import Simulation, compare
from interop.differential.ties import comparable
from interop.javascript import javascript
from interop.open_server import needs_open_server
from support.jazz_server import JazzServer

pytestmark = [pytest.mark.anyio, needs_open_server]

SEED = int(os.environ.get("RESIDE_JAZZ_SEED", "0"))
SOAK_SEED = SEED or secrets.randbelow(2**32)
PROGRAMS_OF_A_SIMULATION = 25
"""After so many programs, new accounts and nodes are used: a node compares all its values at each reconnection."""

settings.register_profile(
    "programs",
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
COMMON = settings.get_profile("programs")


class Simulations:
    """Runs programs, many of them in one simulation."""

    def __init__(self, server: JazzServer) -> None:
        self._server = server
        self._stack = AsyncExitStack()
        self._simulation: Simulation | None = None
        self._uses = 0

    async def run(self, program: Program) -> None:
        """Run a program, and compare what all accounts see.

        Raises:
            AssertionError: They see different things.
        """
        simulation = await self._next_simulation()
        program_run = Run(simulation, program)
        try:
            await program_run.run()
            alike = comparable(simulation.python[0].node._host.store, program_run.ids)
            note(f"compared: {len(alike)} of {len(program_run.ids)} values")
            assume(alike)
            await compare(simulation, alike, fresh=len(program.steps))
        except BaseException:
            await self.close()  # its state is unknown
            raise
        finally:
            note("\n".join(program_run.story))

    async def close(self) -> None:
        """End the current simulation."""
        self._simulation = None
        await self._stack.aclose()

    async def _next_simulation(self) -> Simulation:
        if self._simulation is None or self._uses == PROGRAMS_OF_A_SIMULATION:
            await self.close()
            js = await self._stack.enter_async_context(javascript())
            self._simulation = await self._stack.enter_async_context(Simulation(self._server, js))
            self._uses = 0
        self._uses += 1
        return self._simulation


@pytest.fixture(scope="module")
async def simulations(jazz: JazzServer) -> AsyncIterator[Simulations]:
    """Run programs on the server."""
    made = Simulations(jazz)
    yield made
    await made.close()


@seed(SEED)
@settings(COMMON, max_examples=120)
@given(program=programs())
async def test_all_see_the_same_after_any_program(simulations: Simulations, program: Program) -> None:
    await simulations.run(program)


@seed(SEED)
@settings(COMMON, max_examples=40)
@given(program=programs(FORGERIES))
async def test_all_reach_the_same_verdicts_whatever_members_forge(simulations: Simulations, program: Program) -> None:
    """Most steps are written to the logs without checks, with any time."""
    await simulations.run(program)


@seed(SEED)
@settings(COMMON, max_examples=40)
@given(program=programs(TIES, least=4, most=14, tied=True))
async def test_all_reach_the_same_verdicts_on_changes_of_one_millisecond(
    simulations: Simulations, program: Program
) -> None:
    """Groups are compared where no order of arrival changes the result in JavaScript."""
    await simulations.run(program)


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
@seed(SOAK_SEED)
@settings(COMMON, max_examples=5000)
@given(program=programs() | programs(FORGERIES) | programs(TIES, tied=True))
async def test_all_see_the_same_after_thousands_of_programs(simulations: Simulations, program: Program) -> None:
    note(f"RESIDE_JAZZ_SEED={SOAK_SEED}")
    await simulations.run(program)
