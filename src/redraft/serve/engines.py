"""Several engines side by side, each with its own contexts and CPU core; a session stays on its engine.

The threads of one context synchronise after every operation.  With a small model, whose operations take microseconds,
that costs more than a second thread gains.  Engines run independently: one runs its model while another prepares its
next pass.
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
        engines: at least one.
        most: maximum number of lanes on all engines together.
    """

    def __init__(self, engines: Sequence[Engine], most: int) -> None:
        self.all = tuple(engines)
        self._most = most
        self._admitting = threading.Lock()
        #: Engine -> lanes about to be admitted.
        self._coming: Counter[Engine] = Counter()

    def start(self) -> None:
        """Start all threads."""
        for engine in self.all:
            engine.start()

    def stop(self) -> None:
        """End all threads after their current rounds, and join them."""
        for engine in self.all:
            engine.stop()

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
        """Choose the engine with the fewest lanes, and reserve ``wanted`` lanes there while the block runs.

        Call it on the server's event loop; sessions that start at the same time see each other's reservations.
        """
        engine = min(self.all, key=lambda each: each.scheduler.lanes + self._coming[each])
        self._coming[engine] += wanted
        try:
            yield engine
        finally:
            self._coming[engine] -= wanted

    def admit(self, engine: Engine, lanes: Sequence[Lane]) -> str:
        """Add new lanes; return why they are refused, or an empty string.  Runs on the engine's thread."""
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
