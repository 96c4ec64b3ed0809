"""Tasks that last as long as a block end with it, whatever ends the block."""

from __future__ import annotations

import asyncio

import pytest

from redraft.tasks import beside


@pytest.mark.parametrize("turns", range(8))
def test_cancellation_is_never_lost(turns: int) -> None:
    """Also if it comes while the block waits for its tasks to end."""

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(5):
                await asyncio.sleep(0)

    async def caller() -> None:
        async with beside(slow()):
            await asyncio.sleep(0)
        await asyncio.Event().wait()

    async def work() -> None:
        calling = asyncio.create_task(caller())
        for _ in range(turns):
            await asyncio.sleep(0)
        calling.cancel()
        done, _ = await asyncio.wait([calling], timeout=10)
        assert done and calling.cancelled()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(work())


@pytest.mark.parametrize("problem", [None, KeyError()])
def test_failures(problem: Exception | None) -> None:
    """What a task fails with is raised, unless the block itself has failed."""

    async def fail() -> None:
        raise ValueError

    async def work() -> None:
        async with beside(fail(), asyncio.sleep(60)):
            await asyncio.sleep(0.01)
            if problem:
                raise problem

    with pytest.raises(ValueError if problem is None else KeyError):
        asyncio.run(asyncio.wait_for(work(), 10))
