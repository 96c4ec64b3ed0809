"""The one thread that touches a context of the models; everybody else asks it."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from redraft.captions.events import Update
from redraft.errors import RedraftError
from redraft.serve.lanes import Lane
from redraft.serve.scheduler import Scheduler

T = TypeVar("T")

log = logging.getLogger(__name__)


class Stopped(RedraftError):
    """The engine works no more."""


class Engine:
    """Runs a scheduler on a thread of its own.

    Args:
        scheduler: what is run; after `start` nothing else may touch it.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        #: What is to be done, and who waits for it; None to end.
        self._commands: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._closing, self._closed = threading.Lock(), False
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

        Where the thread has ended, or ends before it comes to that, `Stopped` is.  It is not done any more if the
        future is cancelled before.
        """
        done: Future[T] = Future()
        with self._closing:
            if not self._closed:
                self._commands.put((work, done))
                return done
        _refuse(done)
        return done

    def post(self, work: Callable[[], object]) -> None:
        """Have something done on the thread; nobody waits for it."""
        self.call(partial(_logged, work))

    def offer(self, lane: Lane, update: Update) -> None:
        """Give one of its lanes an update to translate."""
        self.post(partial(self.scheduler.offer, lane, update))

    def remove(self, lanes: Iterable[Lane]) -> None:
        """Forget lanes with all that they still had to do."""
        for lane in lanes:
            self.post(partial(self.scheduler.remove, lane))

    def _run(self) -> None:
        try:
            while self._obey():
                self.scheduler.step()
        except BaseException:
            log.critical("the engine has stopped", exc_info=True)
        finally:
            self._close()

    def _close(self) -> None:
        """Take no more commands, and do not let anybody wait for those that are left."""
        with self._closing:
            self._closed = True
        with suppress(queue.Empty):
            while True:
                if (command := self._commands.get_nowait()) is not None:
                    _refuse(command[1])

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
            _do(*command)
            block = False


def _do(work: Callable[[], T], done: Future[T]) -> None:
    if not done.set_running_or_notify_cancel():  # nobody waits for it any more
        return
    try:
        found = work()
    except BaseException as error:
        done.set_exception(error)
    else:
        done.set_result(found)


def _refuse(done: Future[Any]) -> None:
    if done.set_running_or_notify_cancel():
        done.set_exception(Stopped("the engine works no more"))


def _logged(work: Callable[[], object]) -> None:
    try:
        work()
    except Exception:
        log.exception("a command to the engine failed")
