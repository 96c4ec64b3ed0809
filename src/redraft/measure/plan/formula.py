"""How fast one engine answers how many lanes: the formula.

An engine and its sessions are a closed network of queues.  A session waits for its next update, then its ``k``
languages take part in passes until the update is translated, then it waits again.  All running sessions share the
passes, so with ``n`` of them one pass takes ``T(kn)`` and an update of ``p`` passes ``p T(kn)``.  If sessions wait
``Z`` seconds on average, the probability that ``n`` of ``N`` run is

    P(n) = P(0) * product over i = 1..n of (N - i + 1) / Z * p T(ki) / i

for any distribution of waits and of work (machine repair with a shared server; product form).  If more lanes run than
fit into a pass, ``T`` grows in proportion, since they wait for a place.  The average ``n`` gives the time of a pass as
a session sees it.

``Z``, ``p`` and the lag follow from that time in turn, by playing the recorded talk alone with passes that take so long
(`redraft.measure.plan.alone`): the longer they take, the more updates are overtaken by newer ones.  The formula is the
time at which both agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from redraft.measure.loadtest.script import Script
from redraft.measure.plan.alone import alone
from redraft.measure.plan.costs import PassCost
from redraft.measure.plan.trace import Work

#: Share of the updates that must be answered in time.
IN_TIME = 0.95
#: Bisections of the time of a pass, which is found to a thousandth of its range.
_STEPS = 12
#: The talk is played with passes of so many seconds to a whole power; what lies between is interpolated.
RATIO = 1.15
_LEAST_WAIT = 1e-6
#: What is less likely than this is left out of the lag.
_RARE = 1e-4


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine: a GPU, or a context of llama.cpp on some cores.

    Attributes:
        cost: of its passes.
        most: lanes in a pass, 1 or more.
        host: seconds that Python takes for each request of a pass.
        in_process: whether the engine waits for Python between its passes, as llama.cpp does.  A model server does not:
            its many clients compute meanwhile, and each is delayed by its own time only.
    """

    cost: PassCost
    most: int
    host: float = 0.0
    in_process: bool = True

    def round_seconds(self, lanes: float, tokens: float, cached: float) -> float:
        """Seconds from one pass to the next with so many lanes, each with so many new and cached tokens."""
        host = self.host * (lanes if self.in_process else 1)
        return self.cost(lanes, lanes * tokens, lanes * cached) + host


@dataclass(frozen=True, slots=True)
class Estimate:
    """One engine with a number of sessions.

    Attributes:
        sessions: on the engine.
        busy: share of its time that it works, 0-1.
        running: sessions with an update under way, on average.
        pass_seconds: from one pass to the next, as an update under way sees it, on average.
        lag: seconds within which 95 % of the updates are answered.
    """

    sessions: int
    busy: float
    running: float
    pass_seconds: float
    lag: float


class Crowd:
    """The sessions of one engine, all alike.

    Args:
        work: what was recorded, in one language.
        script: the talk, at its pace.
        engine: the engine.
        targets: languages of a session.
    """

    def __init__(self, work: Work, script: Script, engine: Engine, targets: int = 1) -> None:
        self._targets, self._most = targets, engine.most
        self._alone = cache(lambda power: alone(work, script, RATIO**power))
        sizes = range(1, engine.most + 1)
        self._rounds = np.array([engine.round_seconds(n, work.tokens, work.cached) for n in sizes])

    def estimate(self, sessions: int) -> Estimate:
        """What the formula says of so many sessions."""
        lanes = self._targets * np.arange(1, sessions + 1)
        together = np.minimum(lanes, self._most)
        # Seconds from one pass to the next, as a session sees it, if so many run or wait for a place.
        seconds = self._rounds[together - 1] * lanes / together
        low, high = float(seconds[0]), float(seconds[-1])
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._seen(seconds, middle) > middle else (low, middle)
        chances = self._chances(seconds, high)
        running = float(chances @ np.arange(sessions + 1))
        return Estimate(sessions, float(1 - chances[0]), running, high, self._lag(seconds, chances))

    def lag(self, sessions: int) -> float:
        """Seconds within which 95 % of the updates of so many sessions are answered."""
        return self.estimate(sessions).lag

    def _cycle(self, pass_seconds: float) -> tuple[float, float]:
        """Of a session from one answer to the next: seconds without work, and passes."""
        power = math.log(pass_seconds, RATIO)
        low, high = (self._alone(math.floor(power) + each) for each in (0, 1))
        share = power - math.floor(power)
        wait, passes = (
            (1 - share) * getattr(low, name) / low.updates + share * getattr(high, name) / high.updates
            for name in ("idle", "passes")
        )
        return max(_LEAST_WAIT, wait), passes

    def _chances(self, seconds: np.ndarray, assumed: float) -> np.ndarray:
        """How likely 0 to all sessions run, if they wait and ask as with passes of the assumed time."""
        wait, passes = self._cycle(assumed)
        sizes = np.arange(1, len(seconds) + 1)
        logs = np.log((len(seconds) - sizes + 1) / wait * passes * seconds / sizes)
        logs = np.concatenate([[0.0], np.cumsum(logs)])
        chances = np.exp(logs - logs.max())
        return np.asarray(chances / chances.sum())

    def _seen(self, seconds: np.ndarray, assumed: float) -> float:
        """The time of a pass that follows from the assumed one."""
        wait, passes = self._cycle(assumed)
        running = float(self._chances(seconds, assumed) @ np.arange(len(seconds) + 1))
        return running * wait / ((len(seconds) - running) * passes)

    def _lag(self, seconds: np.ndarray, chances: np.ndarray) -> float:
        """The lag, if an update meets as many others as its session meets when it begins to run, all the time."""
        weights = chances[1:] * np.arange(1, len(chances)) / seconds
        powers = np.round(np.log(seconds) / math.log(RATIO))
        lags, shares = [], []
        for power in np.unique(powers[weights > _RARE * weights.sum()]):
            these = powers == power
            pass_seconds = float(np.average(seconds[these], weights=weights[these]))
            talk = self._alone(int(power))
            # An update comes in the middle of a pass, on average, and waits for its end.
            lags.append(np.array(talk.lags) * pass_seconds / RATIO**power + pass_seconds / 2)
            shares.append(np.full(len(talk.lags), weights[these].sum() / len(talk.lags)))
        lag, share = np.concatenate(lags), np.concatenate(shares)
        order = np.argsort(lag)
        place = np.searchsorted(np.cumsum(share[order]), IN_TIME * share.sum())
        return float(lag[order][min(place, len(lag) - 1)])


def most_carried(lag: Callable[[int], float], deadline: float, most: int, close: float = 0.0) -> int:
    """About the greatest number whose lag is within the deadline, 0 if not even that of 1 is; at most ``most``.

    Args:
        lag: of a number, in seconds.
        close: numbers that differ by less than this share of them are not told apart.
    """
    low, high = 0, 1
    while high <= most and lag(high) <= deadline:
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > max(1, close * low):
        middle = (low + high) // 2
        low, high = (middle, high) if lag(middle) <= deadline else (low, middle)
    return low
