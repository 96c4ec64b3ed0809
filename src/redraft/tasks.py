"""Tasks that last as long as a block."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def beside(*works: Coroutine[Any, Any, Any]) -> AsyncIterator[list[asyncio.Task[Any]]]:
    """Run coroutines as tasks while the block lasts, and cancel them at its end.

    If the block has ended well, what a task has failed with is raised.

    A cancellation of the caller is never lost: `gather` passes it on, where ``await task`` in
    ``suppress(CancelledError)`` would swallow it, and the caller would go on for ever.
    """
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result
