"""What the owner of a worker process does about one that does not keep to the protocol."""

import asyncio
import sys

import pytest

from reside.sentinel.engine.workers import WorkerProcess

pytestmark = pytest.mark.anyio

_SPEAKS_NONSENSE = "import sys; sys.stdin.readline(); print('nonsense', flush=True); sys.stdin.read()"


async def test_a_worker_whose_answer_is_none_is_ended_and_not_used_again() -> None:
    """Its real answer could come later, and be taken for that of another stack's operation."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _SPEAKS_NONSENSE, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
    )
    worker = WorkerProcess(process)
    async with asyncio.timeout(30):
        with pytest.raises(ValueError, match="Expecting value"):
            await worker.call({"operation": "apply"}, None)
        assert not worker.alive
        assert process.returncode is not None
