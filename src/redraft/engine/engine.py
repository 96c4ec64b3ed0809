"""The thread that owns a model's context; all other code sends it commands.  A server may run several.

The threads of one context synchronise after every operation.  With a small model, whose operations take microseconds,
that costs more than a second thread gains.  Engines run independently: one runs its model while another prepares its
next pass.  A session stays on its engine.
"""

from __future__ import annotations

import asyncio
import logging
import math
import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from redraft import deadlines
from redraft.captions.events import Update
from redraft.engine.lanes import Answer, Lane
from redraft.engine.scheduler import NoCapacity, Scheduler
from redraft.errors import OptionError, RedraftError, Unavailable

T = TypeVar("T")

log = logging.getLogger(__name__)

LATE = "the model does not answer at the moment: if it does not recover, the server stops translating"


class Stopped(RedraftError):
    """The engine has stopped: its thread has ended, or its model hangs."""


class Engine:
    """Runs a scheduler on a thread.

    Attributes:
        stopped: is done when the engine has stopped, after `stop`, a crash, or because its model hangs; the result is
            why, in a sentence.
        late: how many times in a row `look` has found it later than `Scheduler.due`.
        asked: answers that are waited for where `look` is called, which fails them once the engine has stopped.

    Args:
        scheduler: the scheduler; after `start`, only the engine's thread may use it.
        answered: called on the engine's thread with every answer.
    """

    def __init__(self, scheduler: Scheduler, answered: Callable[[Answer], None] = lambda answer: None) -> None:
        self.scheduler, self._answered, self.late = scheduler, answered, 0
        #: Functions to call between two rounds, with the futures for their results; None ends the thread.
        self._inbox: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self.stopped: Future[str] = Future()
        self.asked: set[asyncio.Future[Any]] = set()
        self._thread = threading.Thread(target=self._run, name="redraft-engine", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it works: false before `start`, and once it has `stopped`."""
        return self.running and not self.stopped.done()

    @property
    def running(self) -> bool:
        """Whether the thread is running, even if its model hangs."""
        return self._thread.is_alive()

    def stop(self, wait: float = deadlines.HUNG) -> None:
        """End the thread after the current round, and join it, at most for ``wait`` seconds, unless its model hangs."""
        self._inbox.put(None)
        self._thread.join(0 if self.stopped.done() else wait)
        self._close()

    def look(self) -> bool:
        """Look whether the model answers, every `deadlines.LOOK` seconds; return whether it is late since now.

        Looks are counted, not time: after a machine was suspended, nothing is late.  After `deadlines.HUNG` seconds of
        them, the engine stops, and leaves its thread behind: nothing can end a pass.
        """
        self.late = self.late + 1 if self.scheduler.clock() > self.scheduler.due else 0
        if self.late * deadlines.LOOK >= deadlines.HUNG:
            self._close("translation has stopped: the model does not answer")
        for answer in self.asked if self.stopped.done() else ():
            if not answer.done():
                answer.set_exception(Stopped(self.stopped.result()))
        return self.late == 1

    def submit(self, lanes: Sequence[Lane], update: Update, since: float | None = None, *, rest: bool = False) -> None:
        """Give an update to the lanes that are to translate it.

        Args:
            since: when its words were spoken, in seconds of the engine's clock, by default the monotonic clock; its lag
                counts from then.  None stands for this call.
            rest: whether the rest of its translation is shown (`Lane.offer`).
        """
        since = self.scheduler.clock() if since is None else since

        def offer() -> None:
            for lane in lanes:
                self.scheduler.offer(lane, update, since, rest=rest)

        self.post(offer)

    def answers_to(self, receive: Callable[[Answer], object]) -> Callable[[Answer], None]:
        """Return what lanes call with their answers: it passes them to ``receive`` on the running event loop."""
        loop = asyncio.get_running_loop()

        def answer_to(answer: Answer) -> None:
            self._answered(answer)
            with suppress(RuntimeError):  # a pass has outlasted the loop
                loop.call_soon_threadsafe(receive, answer)

        return answer_to

    def call(self, work: Callable[[], T]) -> Future[T]:
        """Call ``work`` on the thread between two rounds; the future has its result or exception.

        If the engine has stopped, or stops first, the future raises `Stopped`.  Cancelling the future in time prevents
        the call.
        """
        done: Future[T] = Future()
        with self._closing:
            if self.stopped.done():
                done.set_exception(Stopped(self.stopped.result()))
            else:
                self._inbox.put((work, done))
        return done

    async def ask(self, work: Callable[[], T]) -> T:
        """Return the result of ``work``, called as by `call`.  Raises `Unavailable` if it does not come in time."""
        try:
            async with asyncio.timeout(deadlines.COMMAND):
                return await asyncio.wrap_future(self.call(work))
        except TimeoutError:
            raise Unavailable(LATE) from None

    def post(self, work: Callable[[], object]) -> None:
        """Call ``work`` on the thread between two rounds; an exception is logged."""
        self.call(work).add_done_callback(_log)

    def remove(self, lanes: Iterable[Lane]) -> None:
        """Remove lanes and drop their work."""
        removed = tuple(lanes)

        def remove() -> None:
            for lane in removed:
                self.scheduler.remove(lane)

        self.post(remove)

    def _run(self) -> None:
        try:
            while self._obey():
                self.scheduler.expect()
                self.scheduler.step()
        except BaseException:
            log.critical("the engine has stopped", exc_info=True)
            self._close("translation has stopped, see the log")
        finally:
            self._close()

    def _obey(self) -> bool:
        """Run waiting commands; wait for one if no lane has work.  Return False when the thread should end."""
        block = not self.scheduler.working
        while True:
            self.scheduler.due = math.inf
            try:
                command = self._inbox.get(block=block)
            except queue.Empty:
                return True
            self.scheduler.expect()
            if command is None:
                return False
            work, done = command
            if done.set_running_or_notify_cancel():
                try:
                    done.set_result(work())
                except BaseException as error:
                    done.set_exception(error)
            block = False

    def _close(self, why: str = "the engine has stopped") -> None:
        """Accept no more commands, and fail those that are left."""
        with self._closing:
            if self.stopped.done():
                return
            self.stopped.set_result(why)
        with suppress(queue.Empty):
            while True:
                command = self._inbox.get_nowait()
                if command is not None and command[1].set_running_or_notify_cancel():
                    command[1].set_exception(Stopped(why))
        self._inbox.put(None)  # for a pass that ends after all


def _log(done: Future[Any]) -> None:
    if not done.cancelled() and (error := done.exception()) and not isinstance(error, Stopped):
        log.error("a command to the engine failed", exc_info=error)


class Engines:
    """The engines of a server; ``most`` is the maximum number of lanes on all of them together."""

    def __init__(self, engines: Sequence[Engine], most: int) -> None:
        self.all = tuple(engines)
        self._most = most
        self._admitting = threading.Lock()
        #: Engine -> lanes about to be admitted.
        self._coming: Counter[Engine] = Counter()

    def stop(self) -> None:
        """Stop all engines after their current rounds, and do not wait for those that may hang."""
        for engine in self.all:
            engine.stop(0 if engine.late else deadlines.PASS)

    @property
    def alive(self) -> bool:
        """Whether all engines are running; if one has stopped, its sessions cannot continue."""
        return all(engine.alive for engine in self.all)

    @property
    def lanes(self) -> int:
        """Number of lanes on all engines."""
        return sum(engine.scheduler.lanes for engine in self.all)

    @contextmanager
    def chosen(self, wanted: int) -> Iterator[Engine]:
        """Choose the engine with the fewest lanes and requests, and reserve ``wanted`` there while the block runs."""
        engine = min(self.all, key=lambda each: (each.late > 0, each.scheduler.lanes + self._coming[each]))
        self._coming[engine] += wanted
        try:
            yield engine
        finally:
            self._coming[engine] -= wanted

    def admit(self, engine: Engine, lanes: Sequence[Lane]) -> None:
        """Add new lanes.  Runs on the engine's thread.

        Raises:
            NoCapacity: there is no capacity at the moment.
            OptionError: there are more lanes than the server may ever have.
        """
        with self._admitting:
            if len(lanes) > self._most:
                raise OptionError(f"must have at most {self._most} languages, not {len(lanes)}", "targets")
            if self.lanes + len(lanes) > self._most:
                raise NoCapacity(
                    f"the server translates into {self.lanes} of at most {self._most} languages at a time, so "
                    f"{len(lanes)} more cannot be admitted; try again later",
                )
            engine.scheduler.check_load(len(lanes))
            for lane in lanes:
                engine.scheduler.add(lane)
