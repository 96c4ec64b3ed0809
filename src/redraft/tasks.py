"""Tasks that last as long as a block, and work on a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")


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


def on_thread(work: Callable[[], T]) -> tuple[Future[T], threading.Thread]:
    """Call a function on a thread, which keeps no program from ending; return what it will give, and the thread."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # the caller gets it
            done.set_exception(error)

    thread = threading.Thread(target=run, name="redraft-work", daemon=True)
    thread.start()
    return done, thread
