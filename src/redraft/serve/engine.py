"""The one thread that touches a context of the models; everybody else asks it."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class _Offer:
    """An update for a lane, and when it came in, in seconds of the engine's clock."""

    lane: Lane
    update: Update
    since: float

    def do(self) -> None:
        """Hand it over."""
        self.lane.offer(self.update, self.since)

    def refuse(self) -> None:
        """Nobody waits for it."""


@dataclass(frozen=True, slots=True)
class _Call:
    """Something to be done, and who waits for it."""

    work: Callable[[], Any]
    done: Future[Any]

    def do(self) -> None:
        """Do it, unless it was cancelled."""
        if not self.done.set_running_or_notify_cancel():
            return
        try:
            self.done.set_result(self.work())
        except BaseException as error:
            self.done.set_exception(error)

    def refuse(self) -> None:
        """Tell whoever waits that it will not be done."""
        if self.done.set_running_or_notify_cancel():
            self.done.set_exception(Stopped("the engine works no more"))


class Engine:
    """Runs a scheduler on a thread of its own.

    Args:
        scheduler: what is run; after `start` nothing else may touch it.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        #: What is to be done between two rounds; None to end.
        self._inbox: queue.SimpleQueue[_Offer | _Call | None] = queue.SimpleQueue()
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
        self._inbox.put(None)
        self._thread.join()

    def offer(self, lane: Lane, update: Update) -> None:
        """Give one of its lanes an update.  Its lag counts from now, whatever pass is under way meanwhile."""
        self._put(_Offer(lane, update, self.scheduler.clock()))

    def call(self, work: Callable[[], T]) -> Future[T]:
        """Have something done on the thread between two rounds; what it returns or raises is in the future.

        Where the thread has ended, or ends before it comes to that, `Stopped` is.  It is not done any more if the
        future is cancelled before.
        """
        done: Future[T] = Future()
        self._put(_Call(work, done))
        return done

    def post(self, work: Callable[[], object]) -> None:
        """Have something done on the thread; nobody waits for it, so what it raises is logged."""
        self.call(work).add_done_callback(_log)

    def remove(self, lanes: Iterable[Lane]) -> None:
        """Forget lanes with all that they still had to do."""
        for lane in lanes:
            self.post(partial(self.scheduler.remove, lane))

    def _put(self, command: _Offer | _Call) -> None:
        with self._closing:
            if not self._closed:
                self._inbox.put(command)
                return
        command.refuse()

    def _run(self) -> None:
        try:
            while self._obey():
                self.scheduler.step()
        except BaseException:
            log.critical("the engine has stopped", exc_info=True)
        finally:
            self._close()

    def _obey(self) -> bool:
        """Do what was asked for meanwhile; without lanes at work wait for it.  False to end."""
        block = not self.scheduler.working
        while True:
            try:
                command = self._inbox.get(block=block)
            except queue.Empty:
                return True
            if command is None:
                return False
            command.do()
            block = False

    def _close(self) -> None:
        """Take no more commands, and do not let anybody wait for those that are left."""
        with self._closing:
            self._closed = True
        with suppress(queue.Empty):
            while True:
                if (command := self._inbox.get_nowait()) is not None:
                    command.refuse()


def _log(done: Future[Any]) -> None:
    if not done.cancelled() and (error := done.exception()) and not isinstance(error, Stopped):
        log.error("a command to the engine failed", exc_info=error)
