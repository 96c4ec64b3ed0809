"""The number of threads of each pass: as many as other processes leave cores free.

The threads of a pass synchronise after every operation, about two hundred times.  A thread that shares its core makes
all others wait, so next to one busy process a pass on all cores can take a hundred times as long as on one.  The load
of other processes is read from the system's clocks (Linux).
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

STAT = Path("/proc/stat")
#: Seconds between two readings of the clocks, whose resolution is 10 ms.
LOOK = 0.3
#: Seconds without another busy process before its core is used again.
REST = 1.0
#: Share of a core that other processes may use before it counts as taken.
TOLERANCE = 0.2

#: Returns the number of threads of the next pass.
Threads: TypeAlias = Callable[[], int]


class FreeCores:
    """Counts the cores that no other process uses.

    Args:
        cores: number of cores that this process may use.
        clocks: returns the idle seconds of these cores and the CPU seconds of this process; None if unknown.
        now: returns wall time in seconds.
    """

    def __init__(
        self,
        cores: int,
        clocks: Callable[[], tuple[float, float] | None] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cores, self._clocks, self._now = cores, clocks or system_clocks, now
        self._last, self._read = now(), self._clocks()
        #: Times of recent readings, and the number of cores that others used until then.
        self._looks: deque[tuple[float, float]] = deque()

    def __call__(self) -> int:
        """Return the number of cores that were free during the last second, at least 1; all of them if unknown."""
        now = self._now()
        if self._read is not None and now - self._last >= LOOK:
            read, taken = self._clocks(), now - self._last
            if read is not None:
                idle, own = (each - earlier for each, earlier in zip(read, self._read, strict=True))
                self._looks.append((now, min(self._cores, max(0.0, self._cores - (idle + own) / taken))))
            self._last, self._read = now, read
        while self._looks and now - self._looks[0][0] > REST:
            self._looks.popleft()
        used = max((used for _, used in self._looks), default=0.0)
        return max(1, int(self._cores - used + TOLERANCE))


def system_clocks() -> tuple[float, float] | None:
    """Return idle seconds of this process's cores and its CPU seconds; None on systems other than Linux."""
    try:
        lines = STAT.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return None
    if not hasattr(os, "sched_getaffinity"):
        return None
    wanted = {f"cpu{core}" for core in os.sched_getaffinity(0)}
    fields = [line.split() for line in lines if line.startswith("cpu")]
    ticks = sum(int(each[4]) + int(each[5]) for each in fields if each[0] in wanted)  # idle, and waiting for a disk
    return ticks / os.sysconf("SC_CLK_TCK"), time.process_time()
