"""Several engines side by side, each with contexts and a core of its own; a session stays where it began.

The threads of one context wait for each other after every operation; where an operation takes microseconds, that costs
more than a second thread brings.  Engines wait for nobody: while one runs its model, another prepares its next pass.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from redraft.serve.engine import Engine
from redraft.serve.lanes import Lane


class Engines:
    """The engines of a server.

    Args:
        engines: one or more.
        most: the most lanes of all of them together.
    """

    def __init__(self, engines: Sequence[Engine], most: int) -> None:
        self.all = tuple(engines)
        self._most = most
        self._admitting = threading.Lock()
        #: Lanes that an engine is being asked to admit.
        self._coming: Counter[Engine] = Counter()

    def start(self) -> None:
        """Start their threads."""
        for engine in self.all:
            engine.start()

    def stop(self) -> None:
        """End their threads after the rounds under way, and wait for them."""
        for engine in self.all:
            engine.stop()

    @property
    def alive(self) -> bool:
        """Whether all of them work; the sessions of one that has stopped could not go on."""
        return all(engine.alive for engine in self.all)

    @property
    def lanes(self) -> int:
        """How many lanes there are."""
        return sum(engine.scheduler.lanes for engine in self.all)

    @contextmanager
    def chosen(self, wanted: int) -> Iterator[Engine]:
        """The engine with the fewest lanes, which counts as having ``wanted`` more while the block lasts.

        Called on the server's event loop, by many that begin at the same time.
        """
        engine = min(self.all, key=lambda each: each.scheduler.lanes + self._coming[each])
        self._coming[engine] += wanted
        try:
            yield engine
        finally:
            self._coming[engine] -= wanted

    def admit(self, engine: Engine, lanes: Sequence[Lane]) -> str:
        """Take new lanes in, on the thread of their engine; or why they cannot be admitted, in one sentence."""
        with self._admitting:
            if self.lanes + len(lanes) > self._most:
                return (
                    f"the server translates into {self.lanes} of at most {self._most} languages at a time, so "
                    f"{len(lanes)} more cannot be admitted; try again later"
                )
            if refusal := engine.scheduler.refusal(len(lanes)):
                return refusal
            for lane in lanes:
                engine.scheduler.add(lane)
            return ""
