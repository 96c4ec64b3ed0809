"""The one thread that touches the models; everybody else asks it."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from redraft.serve.scheduler import Scheduler

T = TypeVar("T")

log = logging.getLogger(__name__)


class Engine:
    """Runs a scheduler on a thread of its own.

    Args:
        scheduler: what is run; after `start` nothing else may touch it.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self._commands: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="redraft-engine", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it still works; false when it was stopped, or could not go on."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """End the thread after the round under way, and wait for it."""
        self._commands.put(None)
        self._thread.join()

    def call(self, work: Callable[[], T]) -> Future[T]:
        """Have something done on the thread between two rounds; what it returns or raises is in the future.

        Where the thread has ended, the future is cancelled.
        """
        done: Future[T] = Future()

        def command() -> None:
            try:
                done.set_result(work())
            except BaseException as error:
                done.set_exception(error)

        if self.alive:
            self._commands.put(command)
        else:
            done.cancel()
        return done

    def post(self, work: Callable[[], object]) -> None:
        """Have something done on the thread; nobody waits for it."""
        self._commands.put(lambda: _logged(work))

    def _run(self) -> None:
        try:
            while self._obey():
                self.scheduler.step()
        except BaseException:
            log.critical("the engine has stopped", exc_info=True)

    def _obey(self) -> bool:
        """Do what was asked for meanwhile; without lanes at work wait for it.  False to end."""
        block = not self.scheduler.working
        while True:
            try:
                command = self._commands.get(block=block)
            except queue.Empty:
                return True
            if command is None:
                return False
            command()
            block = False


def _logged(work: Callable[[], object]) -> None:
    try:
        work()
    except Exception:
        log.exception("a command to the engine failed")
