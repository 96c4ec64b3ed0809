"""How many threads a pass runs on: as many as make it fast, on no more cores than other processes leave free.

The threads of a pass wait for each other after every operation, some two hundred times.  A thread that has to share its
core keeps all others waiting, so that beside one busy process a pass can take a hundred times as long on all cores as
on one.  And how much a further thread brings depends on the model and on the length of the pass: short operations are
over before they have been shared out.  So both are found out while translating: what other processes use is read from
the system's clocks (Linux), and passes of like length are tried on twice and half as many threads now and then.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Protocol

STAT = Path("/proc/stat")
#: Seconds between two looks at the clocks, which tick every 10 ms.
LOOK = 0.3
#: Seconds without another busy process after which its core is used again.
REST = 1.0
#: Share of a core that other processes may use without taking it.
TOLERANCE = 0.2

#: Passes of a trial, and passes between the first ones; later ones are further and further apart, up to `RARELY`.
TRIAL, SOON, RARELY = 5, 8, 1024
#: What a trial must save to be followed, and the share of all time that trials may lose.
GAIN, LOSS = 0.03, 0.03
#: One pass this many times as long as expected ends a trial, and two end it that are both longer by the second factor.
STALL, WORSE = 2.5, 1.15
#: Time of a pass ~ new tokens + this: evens out the lengths that are compared.
OVERHEAD = 8
#: Passes of this many bits or more in their number of new tokens are alike.
LONGEST = 7


class FreeCores:
    """Counts the cores that no other process uses.

    Args:
        cores: that this process may use.
        clocks: (seconds that those cores were idle, seconds of processor time of this process), both growing; None
            where the system does not say.
        now: wall time in seconds.
    """

    def __init__(
        self,
        cores: int,
        clocks: Callable[[], tuple[float, float] | None] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cores, self._clocks, self._now = cores, clocks or system_clocks, now
        self._last, self._read = now(), self._clocks()
        #: When each of the latest looks was taken, and how many cores others used until then.
        self._looks: deque[tuple[float, float]] = deque()

    def __call__(self) -> int:
        """Cores that were free all through the last second, 1 or more; all of them where that cannot be known."""
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
    """Seconds that the cores of this process were idle, and seconds of its processor time; None if not on Linux."""
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
    """Decides on the threads of every pass."""

    def counts(self) -> tuple[int, ...]:
        """Of the numbers that it may decide on now, the least and the greatest; may wait to see what others do."""

    def choose(self, new: int) -> int:
        """Threads for a pass over so many new tokens."""

    def took(self, new: int, seconds: float) -> None:
        """Told of the wall time of the pass that was last decided on."""


@dataclass(slots=True)
class FixedThreads:
    """Always as many as were asked for."""

    count: int

    def counts(self) -> tuple[int, ...]:
        """The number."""
        return (self.count,)

    def choose(self, new: int) -> int:
        """The number."""
        return self.count

    def took(self, new: int, seconds: float) -> None:
        """Of no account."""


@dataclass(slots=True)
class _Length:
    """What is known of passes of like length.

    Attributes:
        home: position in the list of choices of the one that is best, as far as is known.
        times: for every choice tried, the latest times, each over its new tokens and `OVERHEAD`.
        tried: position of the choice under trial.
        passes, wait: at home since the last trial, and how many there are to be.
        upwards: whether the next trial takes more threads.
        stalls: passes in a row that took `STALL` times as long as expected; two make fewer threads due for a trial.
    """

    home: int
    times: dict[int, deque[float]] = field(default_factory=dict)
    tried: int | None = None
    passes: int = 0
    wait: int = SOON
    upwards: bool = True
    stalls: int = 0


class AdaptiveThreads:
    """Finds the best number while passes run.

    Args:
        cores: that this process may use.
        start: threads to begin with.
        free: how many cores other processes leave free now.
        sleep: waits for so many seconds.
    """

    def __init__(
        self, cores: int, start: int, free: Callable[[], int], sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._choices = [*(1 << power for power in range(cores.bit_length()) if 1 << power < cores), cores]
        self._free, self._sleep = free, sleep
        first = max(place for place, count in enumerate(self._choices) if count <= max(1, start))
        self._lengths = [_Length(first) for _ in range(LONGEST + 1)]
        self._taken, self._most = first, len(self._choices) - 1

    def counts(self) -> tuple[int, ...]:
        """One thread and, if no other process uses a core, as many as there are cores; takes `LOOK` seconds."""
        self._free()
        self._sleep(LOOK)
        return (1,) if self._free() < self._choices[-1] else (1, self._choices[-1])

    def choose(self, new: int) -> int:
        """Threads for a pass over so many new tokens."""
        free = self._free()
        self._most = max(place for place, count in enumerate(self._choices) if count <= max(1, free))
        length = self._length(new)
        if length.tried is not None and max(length.tried, length.home) > self._most:
            length.tried = None  # what is seen now says nothing of a machine that is free
        if length.tried is None and length.passes >= length.wait and length.home <= self._most:
            self._begin_trial(length)
        wanted = length.home if length.tried is None else length.tried
        self._taken = min(wanted, self._most)
        return self._choices[self._taken]

    def took(self, new: int, seconds: float) -> None:
        """Learn from the wall time of the pass that was last decided on."""
        length, price = self._length(new), seconds / (new + OVERHEAD)
        times = length.times.setdefault(self._taken, deque(maxlen=9))
        if self._taken == length.tried:
            times.append(price)
            self._judge(length, times)
        elif self._taken == length.home:
            self._settle(length, times, price)
        else:
            times.append(price)

    def _length(self, new: int) -> _Length:
        return self._lengths[min(new.bit_length(), LONGEST)]

    def _begin_trial(self, length: _Length) -> None:
        """Try the next number up or down, in turns; up only where that many cores are free."""
        above, below = length.home + 1, length.home - 1
        possible = [place for place in (above, below) if 0 <= place <= self._most]
        length.passes = 0
        if possible:
            wanted = above if length.upwards else below
            length.tried = wanted if wanted in possible else possible[0]
            length.upwards = not length.upwards
            length.times.pop(length.tried, None)

    def _judge(self, length: _Length, times: deque[float]) -> None:
        """End a trial that has seen enough: follow it if it saves time, else wait longer before the next."""
        usual = median(length.times[length.home])
        seen = len(times) >= TRIAL
        if seen and length.tried is not None and median(times) < usual * (1 - GAIN):
            length.upwards = length.tried > length.home
            length.home, length.wait = length.tried, max(SOON, length.wait // 4)
        elif seen or times[-1] > STALL * usual or (len(times) > 1 and min(times) > WORSE * usual):
            lost = sum(times) / usual - len(times)
            length.wait = max(min(2 * length.wait, RARELY), int(lost / LOSS))
        else:
            return
        length.tried, length.passes = None, 0

    def _settle(self, length: _Length, times: deque[float], price: float) -> None:
        """Note a pass on the usual number."""
        late = bool(times) and price > STALL * median(times)
        length.stalls = length.stalls + 1 if late else 0
        length.passes += 1
        if length.stalls < 2:
            if not late:
                times.append(price)
            return
        times.clear()
        times.append(price)
        length.stalls, length.upwards, length.wait, length.passes = 0, False, SOON, SOON
