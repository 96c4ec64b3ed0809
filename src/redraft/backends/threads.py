"""Choose the number of threads of each pass: as many as make it fast, on the cores that other processes leave free.

The threads of a pass synchronise after every operation, about two hundred times.  A thread that shares its core makes
all others wait, so next to one busy process a pass on all cores can take a hundred times as long as on one.  The gain
from another thread depends on the model and on the length of the pass, since short operations are hard to divide.  Both
are measured while translating: the load of other processes is read from the system's clocks (Linux), and passes of
similar length are occasionally tried on twice and on half as many threads.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Protocol

STAT = Path("/proc/stat")
#: Seconds between two readings of the clocks, whose resolution is 10 ms.
LOOK = 0.3
#: Seconds without another busy process before its core is used again.
REST = 1.0
#: Share of a core that other processes may use before it counts as taken.
TOLERANCE = 0.2

#: Passes per trial, and passes before the first trials; the intervals grow up to `RARELY`.
TRIAL, SOON, RARELY = 5, 8, 1024
#: Minimum gain of a trial to be adopted, and maximum share of the total time that trials may lose.
GAIN, LOSS = 0.03, 0.03
#: A trial ends after one pass this many times slower than expected, or after two that are both slower by the second
#: factor.
STALL, WORSE = 2.5, 1.15
#: The time of a pass is modelled as proportional to new tokens plus this, to compare similar lengths.
OVERHEAD = 8
#: Number of bits of the token count from which all passes count as similar.
LONGEST = 7


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
            self._look(now)
        while self._looks and now - self._looks[0][0] > REST:
            self._looks.popleft()
        used = max((used for _, used in self._looks), default=0.0)
        return max(1, int(self._cores - used + TOLERANCE))

    def _look(self, now: float) -> None:
        read, before = self._clocks(), self._read
        if read is not None and before is not None:
            taken = now - self._last
            idle, own = (each - earlier for each, earlier in zip(read, before, strict=True))
            self._looks.append((now, min(self._cores, max(0.0, self._cores - (idle + own) / taken))))
        self._last, self._read = now, read


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


class Threads(Protocol):
    """Chooses the number of threads of every pass."""

    def counts(self) -> tuple[int, ...]:
        """Return the minimum and maximum of the current choices; may wait to observe other processes."""

    def choose(self, new: int) -> int:
        """Choose the threads of a pass over ``new`` tokens."""

    def took(self, new: int, seconds: float) -> None:
        """Record the wall time of the pass chosen last."""


@dataclass(slots=True)
class FixedThreads:
    """Always the same number of threads."""

    count: int

    def counts(self) -> tuple[int, ...]:
        """Return that number."""
        return (self.count,)

    def choose(self, new: int) -> int:
        """Return that number."""
        return self.count

    def took(self, new: int, seconds: float) -> None:
        """Ignore the time."""


@dataclass(slots=True)
class _Length:
    """State of passes of similar length.

    Attributes:
        home: index of the best known choice.
        times: for every choice tried, its latest times, each divided by new tokens plus `OVERHEAD`.
        tried: index of the choice on trial.
        passes: passes at home since the last trial.
        wait: passes until the next trial.
        upwards: whether the next trial takes more threads.
        stalls: successive passes that took `STALL` times as long as expected; after two, fewer threads are tried.
    """

    home: int
    times: dict[int, deque[float]] = field(default_factory=dict)
    tried: int | None = None
    passes: int = 0
    wait: int = SOON
    upwards: bool = True
    stalls: int = 0


class AdaptiveThreads:
    """Finds the best number of threads while passes run.

    Args:
        cores: number of cores that this process may use.
        start: initial number of threads.
        free: returns the number of cores that other processes leave free.
        sleep: waits for a number of seconds.
    """

    def __init__(
        self, cores: int, start: int, free: Callable[[], int], sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._choices = [*(1 << power for power in range(cores.bit_length()) if 1 << power < cores), cores]
        self._free, self._sleep = free, sleep
        first = self._highest(start)
        self._lengths = [_Length(first) for _ in range(LONGEST + 1)]
        self._taken, self._most = first, len(self._choices) - 1

    def counts(self) -> tuple[int, ...]:
        """Return 1 and, if no other process uses a core, the number of cores; takes `LOOK` seconds."""
        self._free()
        self._sleep(LOOK)
        return (1,) if self._free() < self._choices[-1] else (1, self._choices[-1])

    def choose(self, new: int) -> int:
        """Choose the threads of a pass over ``new`` tokens."""
        self._most = self._highest(self._free())
        length = self._length(new)
        if length.tried is not None and max(length.tried, length.home) > self._most:
            length.tried = None  # observations on a busy machine do not apply to a free one
        if length.tried is None and length.passes >= length.wait and length.home <= self._most:
            self._begin_trial(length)
        wanted = length.home if length.tried is None else length.tried
        self._taken = min(wanted, self._most)
        return self._choices[self._taken]

    def took(self, new: int, seconds: float) -> None:
        """Learn from the wall time of the pass chosen last."""
        length, cost = self._length(new), seconds / (new + OVERHEAD)
        times = length.times.setdefault(self._taken, deque(maxlen=9))
        if self._taken == length.tried:
            times.append(cost)
            self._judge(length, times)
        elif self._taken == length.home:
            self._settle(length, times, cost)
        else:
            times.append(cost)

    def _highest(self, cores: int) -> int:
        """Return the index of the highest choice on a number of cores."""
        return bisect_right(self._choices, max(1, cores)) - 1

    def _length(self, new: int) -> _Length:
        return self._lengths[min(new.bit_length(), LONGEST)]

    def _begin_trial(self, length: _Length) -> None:
        """Try the next higher or lower number in turn; a higher one only if that many cores are free."""
        above, below = length.home + 1, length.home - 1
        possible = [place for place in (above, below) if 0 <= place <= self._most]
        length.passes = 0
        if possible:
            wanted = above if length.upwards else below
            length.tried = wanted if wanted in possible else possible[0]
            length.upwards = not length.upwards
            length.times.pop(length.tried, None)

    def _judge(self, length: _Length, times: deque[float]) -> None:
        """End a trial after enough passes: adopt it if it saves time, otherwise wait longer before the next one."""
        typical = median(length.times[length.home])
        seen = len(times) >= TRIAL
        if seen and length.tried is not None and median(times) < typical * (1 - GAIN):
            length.upwards = length.tried > length.home
            length.home, length.wait = length.tried, max(SOON, length.wait // 4)
        elif seen or times[-1] > STALL * typical or (len(times) > 1 and min(times) > WORSE * typical):
            lost = sum(times) / typical - len(times)
            length.wait = max(min(2 * length.wait, RARELY), int(lost / LOSS))
        else:
            return
        length.tried, length.passes = None, 0

    def _settle(self, length: _Length, times: deque[float], cost: float) -> None:
        """Record a pass on the current best number."""
        late = bool(times) and cost > STALL * median(times)
        length.stalls = length.stalls + 1 if late else 0
        length.passes += 1
        if length.stalls < 2:
            if not late:
                times.append(cost)
            return
        times.clear()
        times.append(cost)
        length.stalls, length.upwards, length.wait, length.passes = 0, False, SOON, SOON
